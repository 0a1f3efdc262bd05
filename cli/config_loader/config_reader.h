// Reads the options of a TOML file. config_loader.h is its C interface.
#pragma once

#include <string>
#include <vector>

#include "protocol/options.h"

namespace sluice::cli {

struct ConfigValue {
  const protocol::OptionInfo* info;  // static
  std::string text;                  // as the environment variable would have it
  uint32_t line;                     // of the file, from 1
};

// Fills `values` in the order of the options table. Returns "", or one line with file, line and
// problem; `values` is then empty. Types are checked, values are not (option_problem).
std::string read_config(const char* path, std::vector<ConfigValue>* values);

}  // namespace sluice::cli
