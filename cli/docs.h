// `sluice docs`: the parts of documents that are generated from tables and types.
// tests/integration/cli_test.py compares the committed documents with it.
#pragma once

namespace sluice::cli {

// docs/configuration.md, from the tables of options and metrics, to standard output. Returns the
// exit status.
int print_configuration();

}  // namespace sluice::cli
