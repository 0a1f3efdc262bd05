// The PyTorch adapter for Python interpreters that do not import sitecustomize from PYTHONPATH: it
// runs when PyTorch is loaded.
#pragma once

namespace sluice::preload {

// Called from the dlopen hook when a library is about to be loaded. If it is PyTorch's own module,
// in a Python that was started with -E, -I or -S, the adapter runs soon after, between two
// instructions of the interpreter. Any thread, not from a signal handler, errno may change.
void library_is_loaded(const char* path);

}  // namespace sluice::preload
