#include "cli/config_loader/config_loader.h"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/config_loader/config_reader.h"

extern "C" int sluice_config_read(const char* path,
                                  void (*set)(void* context, const char* flag, const char* value),
                                  void* context, char* error, size_t error_size) {
  std::vector<sluice::cli::ConfigValue> values;
  try {
    const std::string problem = sluice::cli::read_config(path, &values);
    if (!problem.empty()) {
      snprintf(error, error_size, "%s", problem.c_str());
      return -1;
    }
  } catch (const std::exception& failure) {
    snprintf(error, error_size, "%s: %s", path, failure.what());
    return -1;
  }
  for (const auto& value : values) set(context, value.info->flag, value.text.c_str());
  return 0;
}
