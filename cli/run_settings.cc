#include "cli/run_settings.h"

#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "cli/config_loader/config_reader.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

using protocol::kOptions;
using protocol::Option;
using protocol::OptionInfo;

size_t index_of(Option option) { return static_cast<size_t>(option); }

std::string environment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// Reports a socket path that no job could use.
const char* place_problem(const OptionInfo& info, const std::string& value) {
  if (info.option != Option::kSocket || value.empty()) return nullptr;
  const bool fits = value[0] == '/' && value.size() < sizeof(sockaddr_un::sun_path);
  return fits ? nullptr : "is not an absolute path of at most 107 bytes";
}

// "--size fifty is not a size such as 50M (a size from 64K to 1T, or auto)"
std::string complaint(const OptionInfo& info, const std::string& spelled,
                      const std::string& value) {
  const char* problem = protocol::option_problem(info, value.c_str());
  if (problem == nullptr) problem = place_problem(info, value);
  if (problem == nullptr) return "";
  std::string line = spelled + (value.empty() ? "''" : one_line(value)) + " " + problem;
  return line + " (" + values_of(info) + ")";
}

// Fills values that are not set yet from the file. Returns the problem or "".
std::string add_file(const std::string& path, Given* values) {
  std::vector<ConfigValue> found;
  std::string problem = read_config(path.c_str(), &found);
  if (!problem.empty()) return problem;
  for (const ConfigValue& value : found) {
    const std::string where = one_line(path) + ":" + std::to_string(value.line) + ": ";
    problem = complaint(*value.info, where + value.info->flag + " = ", value.text);
    if (!problem.empty()) return problem;
    std::optional<std::string>& winner = (*values)[index_of(value.info->option)];
    if (!winner) winner = value.text;
  }
  return "";
}

std::vector<std::string> unknown_variables() {
  std::vector<std::string> unknown;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    if (strncmp(*at, protocol::kVariablePrefix, strlen(protocol::kVariablePrefix)) != 0) continue;
    const std::string name(*at, strcspn(*at, "="));
    bool known = false;
    for (const OptionInfo& info : kOptions) known = known || name == info.variable;
    for (const char* own : protocol::kOwnVariables) known = known || name == own;
    if (!known) unknown.push_back(name);
  }
  return unknown;
}

}  // namespace

Resolved resolve_settings(const Given& command_line) {
  Resolved resolved;
  resolved.unknown = unknown_variables();
  for (const OptionInfo& info : kOptions) {
    std::optional<std::string>& winner = resolved.values[index_of(info.option)];
    if (const auto& given = command_line[index_of(info.option)]; given) {
      resolved.problem = complaint(info, std::string("--") + info.flag + " ", *given);
      winner = *given;
    } else if (const std::string value = environment(info.variable); !value.empty()) {
      resolved.problem = complaint(info, std::string(info.variable) + "=", value);
      winner = value;
    }
    if (!resolved.problem.empty()) return resolved;
  }
  const auto& config = resolved.values[index_of(Option::kConfig)];
  if (config && !config->empty()) resolved.problem = add_file(*config, &resolved.values);
  return resolved;
}

void export_settings(const Given& values) {
  for (const OptionInfo& info : kOptions) {
    const auto& value = values[index_of(info.option)];
    if (!value) continue;
    if (value->empty() || info.option == Option::kConfig) {
      unsetenv(info.variable);
    } else {
      setenv(info.variable, value->c_str(), 1);
    }
  }
}

bool export_preload(const std::string& library) {
  if (library.find_first_of(" :") != std::string::npos) return false;
  const std::string already = environment("LD_PRELOAD");
  for (size_t at = 0; at < already.size();) {
    const size_t end = std::min(already.find_first_of(" :", at), already.size());
    if (already.compare(at, end - at, library) == 0) return true;
    at = end + 1;
  }
  const std::string joined = already.empty() ? library : library + ":" + already;
  setenv("LD_PRELOAD", joined.c_str(), 1);
  return true;
}

void allow_sanitized_programs() {
  static constexpr char kVariable[] = "ASAN_OPTIONS";
  static constexpr char kOrder[] = "verify_asan_link_order";
  const std::string already = environment(kVariable);
  if (already.find(kOrder) != std::string::npos) return;
  const std::string option = std::string(kOrder) + "=0";
  setenv(kVariable, already.empty() ? option.c_str() : (already + ":" + option).c_str(), 1);
}

std::string chosen_socket(const std::string& flag) {
  return !flag.empty() ? flag : environment(protocol::option_info(Option::kSocket).variable);
}

std::string chosen_cache_dir(const std::string& given, std::string* problem) {
  if (!given.empty()) return given;
  const Resolved settings = resolve_settings({});
  *problem = settings.problem;
  if (!problem->empty()) return "";
  std::string chosen = settings.values[index_of(Option::kCacheDir)].value_or("");
  if (chosen.empty()) *problem = "no cache folder; name it, or set SLUICE_CACHE_DIR";
  return chosen;
}

uint64_t chosen_memory() {
  const std::string value = environment(protocol::option_info(Option::kMemory).variable);
  uint64_t bytes = 0;
  return protocol::parse_bytes(value.c_str(), &bytes) ? bytes : 0;
}

std::string search_path() {
  const char* path = getenv("PATH");
  return path != nullptr ? path : "/bin:/usr/bin";
}

}  // namespace sluice::cli
