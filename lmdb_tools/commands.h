// The subcommands of sluice-lmdb. Each add_* adds one with its options to `app`; it runs while
// `app` parses, and throws a Failure for every problem.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace sluice::lmdb {

void add_make(CLI::App& app);
void add_stat(CLI::App& app);
void add_layout(CLI::App& app);
void add_verify(CLI::App& app);
void add_ranges(CLI::App& app);
void add_replicas(CLI::App& app);
void add_reorder(CLI::App& app);

// The argument that names the database of a command.
void add_database(CLI::App* command, std::string* path);

// A key on one line: bytes that are not printable ASCII, and backslashes, as \xNN.
std::string printable(std::string_view key);

// Fails if standard output did not accept everything that was printed.
void check_output();

}  // namespace sluice::lmdb
