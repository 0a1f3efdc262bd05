// The layout of --help: options with their wrapped text beside them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "protocol/options.h"

namespace sluice::cli {

// The group of options that few users need.
inline constexpr const char* kFurtherOptions = "Further options";

class HelpFormatter : public CLI::Formatter {
 public:
  // `all`: kFurtherOptions are shown, too.
  explicit HelpFormatter(bool all) : all_(all) {}
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  // `run` takes a command that the parser does not know about.
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;

 private:
  const bool all_;
};

// Two lines: what the option does; its values, default and variable.
std::string option_help(const protocol::OptionInfo& info);

}  // namespace sluice::cli
