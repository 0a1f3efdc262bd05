// The path of the library itself, from which files installed with it are found.
#pragma once

#include <cstddef>

namespace sluice::preload {

// The absolute path of NAME in the library's folder. False if it does not fit or is unknown.
bool beside_library(char* out, size_t size, const char* name);

// The absolute path of the library.
bool library_path(char* out, size_t size);

// Looks up the clock that sys::now_ns() reads, in the vDSO; once, in the constructor.
void find_clock();

}  // namespace sluice::preload
