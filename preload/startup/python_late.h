// The PyTorch adapter for Pythons that look for no sitecustomize on PYTHONPATH: run when PyTorch is
// loaded.
#pragma once

namespace sluice::preload {

// A library is about to be loaded. If it is PyTorch's own module, in a Python that was started with
// -E, -I or -S, the adapter is run soon after, between two instructions of the interpreter. Called
// from the dlopen hook: any thread, not from a signal handler, errno may change.
void library_is_loaded(const char* path);

}  // namespace sluice::preload
