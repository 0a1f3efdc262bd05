// libsluice_config.so: the TOML reader, separate from the preload library so that a job without a
// configuration file loads no parser. The preload library opens it with dlopen and looks up its one
// function; they share no other code.
#pragma once

#include <cstddef>

extern "C" {

// Reads the options in the TOML file `path` and passes each to `set` in the order of the options
// table: `flag` is OptionInfo::flag, `value` its text as the environment would have it (paths of
// an array joined with ':'). Both are valid during the call only.
//
// Returns 0, or -1 after writing one line (NUL-terminated, truncated at error_size) to `error`.
// Then `set` was not called at all: an unknown key, a wrong type or a syntax error invalidates the
// whole file. Values are checked for type, not for meaning: use option_problem.
//
// Allocates and opens a file: not async-signal-safe. Any thread. Throws nothing, unless `set`
// does.
__attribute__((visibility("default"))) int sluice_config_read(
    const char* path, void (*set)(void* context, const char* flag, const char* value),
    void* context, char* error, size_t error_size);

}  // extern "C"
