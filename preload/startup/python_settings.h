// Offers the PyTorch adapter to a Python: puts its folder first on PYTHONPATH, where the
// interpreter finds sitecustomize.py, which removes the folder again (adapters/pytorch).
#pragma once

namespace sluice::preload {

// Changes the environment if this program is a Python that reads PYTHONPATH. Constructor only.
void offer_adapter();

// The adapter's folder if the interpreter does not search PYTHONPATH for it (-E, -I, -S); nullptr
// in any other program. Constant once the constructor has run; any thread.
const char* late_adapter();

}  // namespace sluice::preload
