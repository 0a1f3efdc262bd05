// A Python gets the PyTorch adapter: its folder in front on PYTHONPATH, where the interpreter finds
// sitecustomize.py, which takes itself out again (adapters/pytorch).
#pragma once

namespace sluice::preload {

// Changes the environment if this program is a Python that will look there. Constructor only.
void offer_adapter();

// The adapter's folder where the interpreter will not look for it (-E, -I, -S); nullptr in any
// other program. Constant once the constructor has run; any thread.
const char* late_adapter();

}  // namespace sluice::preload
