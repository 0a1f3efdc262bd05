// `sluice docs`: what documents say that is known from tables and types. tests/integration/cli_test
// holds the committed documents against it.
#pragma once

namespace sluice::cli {

// docs/configuration.md, from the tables of options and metrics, to standard output. Returns the
// exit status.
int print_configuration();

}  // namespace sluice::cli
