#include "cli/help.h"

#include <fmt/format.h>

#include <utility>

#include "cli/text.h"

namespace sluice::cli {
namespace {

constexpr size_t kMargin = 26;
constexpr size_t kWidth = 98;

}  // namespace

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  if (app->get_name() == "run") return "Usage: sluice run [options] -- COMMAND...\n";
  return CLI::Formatter::make_usage(app, std::move(name));
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  if (group == kFurtherOptions && !all_) return "";
  return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string head = "  " + make_option_name(option, is_positional);
  if (!is_positional && !option->get_type_name().empty()) head += " " + option->get_type_name();
  std::string body;
  for (const std::string& line : split(option->get_description(), '\n')) {
    body += wrapped(line, std::string(kMargin, ' '), kWidth);
  }
  if (head.size() + 2 > kMargin) return head + "\n" + body;
  return head + body.substr(head.size());
}

std::string option_help(const protocol::OptionInfo& info) {
  std::string help = fmt::format("{}\n{}", info.help, values_of(info));
  if (*info.default_text != '\0') help += fmt::format("; default {}", info.default_text);
  return help + fmt::format("; {}", info.variable);
}

}  // namespace sluice::cli
