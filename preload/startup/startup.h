// The steps of the library's constructor, and what it finds out for later.
#pragma once

namespace sluice::preload {

// Forks that libc makes: which locks must be free in the child, and which state is reset there.
// Constructor only, once.
void watch_forks();

// Makes a relative path of this library in LD_PRELOAD, as this process's children inherit it,
// absolute: a child with another working directory would not find "build/libsluice.so". Constructor
// only.
void make_preload_absolute();

// Offers the PyTorch adapter to a Python: puts its folder first on PYTHONPATH, where the
// interpreter finds sitecustomize.py, which removes the folder again (adapters/pytorch). Without
// effect in programs that are no Python, or one that does not read PYTHONPATH. Constructor only.
void offer_adapter();
// The adapter's folder if the interpreter does not search PYTHONPATH for it (-E, -I, -S); nullptr
// in any other program. Constant once the constructor has run; any thread.
const char* late_adapter();

// SLUICE_CRASH_TRACE: loads libunwind, if the settings ask for it, and makes the fault handler
// print the thread's stack before a crash that Sluice did not cause is forwarded. Not strictly
// async-signal-safe (libunwind and dladdr may take locks), which is why it is an option.
// Constructor only.
void prepare_crash_trace();

// Called from the dlopen hook when a library is about to be loaded. If it is PyTorch's own module,
// in a Python that was started with -E, -I or -S, the adapter runs soon after, between two
// instructions of the interpreter. Any thread, not from a signal handler, errno may change.
void library_is_loaded(const char* path);

}  // namespace sluice::preload
