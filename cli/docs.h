// `sluice docs`: what documents say that is known from tables and types. tests/integration/cli_test
// holds the committed documents against it.
#pragma once

namespace sluice::cli {

// Both print to standard output and return the exit status.
int print_configuration();  // docs/configuration.md, from the tables of options and metrics
int print_layout();         // numbers and layouts of docs/protocol.md

}  // namespace sluice::cli
