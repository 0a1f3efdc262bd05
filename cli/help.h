// How --help looks: options with their text wrapped beside them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "protocol/options.h"

namespace sluice::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  // `run` takes a command that the parser never sees.
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
};

// Two lines: what the option does; its values, default and variable.
std::string option_help(const protocol::OptionInfo& info);

}  // namespace sluice::cli
