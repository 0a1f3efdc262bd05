#include "cli/config_loader/config_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace sluice::cli {
namespace {

using protocol::OptionInfo;
using protocol::OptionKind;

constexpr size_t kMaxConfigBytes = 1 << 20;

// One line, whatever a quoted key contains.
std::string at_line(const char* path, uint32_t line, const std::string& problem) {
  std::string text = std::string(path) + ":" + std::to_string(line) + ": " + problem;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

// Returns 0 or an errno value.
int read_whole(const char* path, std::string* text) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return errno;
  char block[16384];
  int problem = 0;
  for (;;) {
    const ssize_t got = read(file, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) problem = errno;
    if (got <= 0) break;
    text->append(block, static_cast<size_t>(got));
    if (text->size() > kMaxConfigBytes) {
      problem = EFBIG;
      break;
    }
  }
  close(file);
  return problem;
}

// By OptionKind.
constexpr const char* kWantedTypes[] = {"text in quotes",
                                        "text in quotes or an array of such",
                                        "a size such as \"50M\" or a whole number of bytes",
                                        "a whole number",
                                        "one of its words in quotes",
                                        "true or false",
                                        "text in quotes"};

// Appends one text of a path list, or a plain text. Returns the problem or nullptr.
const char* take_text(const toml::value<std::string>& node, bool in_list, std::string* text) {
  const std::string& value = node.get();
  if (value.find('\0') != std::string::npos) return "contains a NUL byte";
  if (in_list && value.find(':') != std::string::npos) {
    return "contains a colon, which separates paths";
  }
  *text += value;
  return nullptr;
}

// Converts a node to the option's text. Returns the problem or "".
std::string take_value(const OptionInfo& info, const toml::node& node, std::string* text) {
  const OptionKind kind = info.kind;
  const std::string flag = info.flag;
  if (const auto* string = node.as_string()) {
    const char* problem = take_text(*string, false, text);
    return problem != nullptr ? flag + " " + problem : "";
  }
  if (const auto* number = node.as_integer();
      number != nullptr &&
      (kind == OptionKind::kBytes || kind == OptionKind::kNumber || kind == OptionKind::kSwitch)) {
    *text = std::to_string(number->get());
    return "";
  }
  if (const auto* on = node.as_boolean(); on != nullptr && kind == OptionKind::kSwitch) {
    *text = on->get() ? "on" : "off";
    return "";
  }
  if (const auto* list = node.as_array(); list != nullptr && kind == OptionKind::kPaths) {
    for (const toml::node& entry : *list) {
      const auto* string = entry.as_string();
      if (string == nullptr) return flag + " wants every entry of its array to be text in quotes";
      if (!text->empty()) *text += ':';
      const char* problem = take_text(*string, true, text);
      if (problem != nullptr) return flag + ": \"" + string->get() + "\" " + problem;
    }
    return "";
  }
  return flag + " wants " + kWantedTypes[static_cast<size_t>(kind)];
}

}  // namespace

std::string read_config(const char* path, std::vector<ConfigValue>* values) {
  values->clear();
  std::string content;
  if (const int problem = read_whole(path, &content); problem != 0) {
    return std::string(path) + ": " + strerror(problem);
  }
  const toml::parse_result parsed = toml::parse(content, std::string_view(path));
  if (!parsed) {
    return at_line(path, parsed.error().source().begin.line,
                   std::string(parsed.error().description()));
  }
  std::vector<ConfigValue> found;
  for (const auto& [key, node] : parsed.table()) {
    const uint32_t line = key.source().begin.line;
    const OptionInfo* info = protocol::find_option(key.str().data(), key.str().size());
    if (info == nullptr) {
      return at_line(path, line, "no option is called '" + std::string(key.str()) + "'");
    }
    if (info->option == protocol::Option::kConfig) {
      return at_line(path, line, "a configuration file cannot name another one");
    }
    ConfigValue value{info, "", line};
    const std::string problem = take_value(*info, node, &value.text);
    if (!problem.empty()) return at_line(path, line, problem);
    found.push_back(std::move(value));
  }
  std::sort(found.begin(), found.end(),
            [](const ConfigValue& a, const ConfigValue& b) { return a.info < b.info; });
  *values = std::move(found);
  return "";
}

}  // namespace sluice::cli
