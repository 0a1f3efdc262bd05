// The options of a run, from the command line, the environment and the TOML file. All code of the
// program that reads or changes SLUICE_* variables is here.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "protocol/options.h"

namespace sluice::cli {

// By protocol::Option: the values as given, unchecked.
using Given = std::array<std::optional<std::string>, protocol::kOptionCount>;

struct Resolved {
  Given values;         // the effective values: command line, then environment, then file
  std::string problem;  // one line, if a value or the file is invalid; do not use `values` then
  std::vector<std::string> unknown;  // SLUICE_* variables that are no options
};

// An empty environment variable is unset. An empty value on the command line unsets the option. An
// invalid value in the environment matters only if the command line does not override it.
Resolved resolve_settings(const Given& command_line);

// Exports the effective values to this process's environment, for the command. SLUICE_CONFIG is
// removed, since the file's options are then in the environment.
void export_settings(const Given& values);

// Puts `library` first in LD_PRELOAD, unless it is in it already. Returns false if its path has a
// space or colon, which LD_PRELOAD cannot contain.
bool export_preload(const std::string& library);

// Adds to ASAN_OPTIONS that the address sanitizer's shared runtime need not be the first library of
// a program, since LD_PRELOAD comes before it. The user's own setting has precedence.
void allow_sanitized_programs();

// The socket that the user chose, or "" for the default one: `flag` if not empty, else
// SLUICE_SOCKET.
std::string chosen_socket(const std::string& flag);

// The folder for packs: `given` if not empty, else cache-dir from the environment or the file. ""
// if there is none, with *problem in one line.
std::string chosen_cache_dir(const std::string& given, std::string* problem);

// SLUICE_MEMORY if it is a size, else 0 for automatic.
uint64_t chosen_memory();

// PATH as execvp would use it.
std::string search_path();

}  // namespace sluice::cli
