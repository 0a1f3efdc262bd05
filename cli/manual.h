// The documents that the program writes about itself.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace sluice::cli {

// docs/configuration.md, from the tables of options and metrics. tests/integration/cli_test.py
// compares the committed document with it.
std::string configuration();

// The exit statuses of all subcommands: a paragraph of Markdown.
extern const char* const kExitStatuses;

// sluice(1), in roff: the commands of `app` with their options, as `--help` shows them.
std::string manual_page(const CLI::App& app);

}  // namespace sluice::cli
