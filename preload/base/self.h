// The path of the library itself, from which files installed with it are found; the names of code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// The absolute path of NAME in the library's folder. False if it does not fit or is unknown.
bool beside_library(char* out, size_t size, const char* name);

// The absolute path of the library.
bool library_path(char* out, size_t size);

// "LIBRARY(FUNCTION+0x12)", or the bare address if it is in no library. Not async-signal-safe: may
// take the loader's lock.
void name_of_code(uintptr_t address, char* out, size_t size);

// Looks up the clock that sys::now_ns() reads, in the vDSO; once, in the constructor.
void find_clock();

}  // namespace sluice::preload
