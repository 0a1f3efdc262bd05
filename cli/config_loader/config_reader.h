// Reads the options of a TOML file. Ordinary code; config_loader.h is its C face.
#pragma once

#include <string>
#include <vector>

#include "protocol/options.h"

namespace sluice::cli {

struct ConfigValue {
  const protocol::OptionInfo* info;  // static
  std::string text;                  // as the environment variable would hold it
  uint32_t line;                     // of the file, from 1
};

// Fills `values` in the order of the options table. Returns "", or one line that says file,
// line and problem; `values` is then empty. Types are checked, values are not (option_problem).
std::string read_config(const char* path, std::vector<ConfigValue>* values);

}  // namespace sluice::cli
