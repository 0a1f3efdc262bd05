// A Python gets the PyTorch adapter: its folder in front on PYTHONPATH, where the interpreter finds
// sitecustomize.py, which takes itself out again (adapters/pytorch).
#pragma once

namespace sluice::preload {

// Changes the environment if this program is a Python that will look there. Constructor only.
void offer_adapter();

}  // namespace sluice::preload
