// libsluice_config.so: the TOML reader, apart from the preload library so that a job that names
// no configuration file loads no parser. The preload library opens it with dlopen and looks the
// one function up; it shares no other code with it.
#pragma once

#include <cstddef>

extern "C" {

// Reads the options in the TOML file `path` and hands each to `set` in the order of the options
// table: `flag` is OptionInfo::flag, `value` its text as the environment would hold it (paths of
// an array joined with ':'). Both are valid during the call only.
//
// Returns 0, or -1 after writing one line (NUL-terminated, cut at error_size) to `error`. Then
// `set` was not called at all: a file with an unknown key, a wrong type or a syntax error counts
// as a whole. Values are checked for type, not for meaning: use option_problem.
//
// Allocates and opens a file: not async-signal-safe. Any thread. Throws nothing, unless `set`
// does.
__attribute__((visibility("default"))) int sluice_config_read(
    const char* path, void (*set)(void* context, const char* flag, const char* value),
    void* context, char* error, size_t error_size);

}  // extern "C"
