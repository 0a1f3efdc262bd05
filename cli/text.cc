#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::cli {
namespace {

// The shortest notation that parse_bytes reads back.
std::string size_literal(uint64_t bytes) {
  static constexpr struct {
    unsigned shift;
    const char* suffix;
  } kUnits[] = {{40, "T"}, {30, "G"}, {20, "M"}, {10, "K"}};
  for (const auto& unit : kUnits) {
    const uint64_t mask = (1ULL << unit.shift) - 1;
    if (bytes != 0 && (bytes & mask) == 0) {
      return fmt::format("{}{}", bytes >> unit.shift, unit.suffix);
    }
  }
  return fmt::format("{}", bytes);
}

// Number of characters of UTF-8 text, accurate enough for columns of file names.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return line;
}

std::string replaced(std::string_view text, char what, std::string_view by) {
  std::string out;
  for (const char c : text) c == what ? out.append(by) : out.append(1, c);
  return out;
}

std::string format_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  const int decimals = unit == 0 || bytes >= 100 ? 0 : 1;
  return fmt::format("{:.{}f} {}", bytes, decimals, kUnits[unit]);
}

std::string format_time(double nanoseconds) {
  if (nanoseconds < 1e3) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.0f} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.1f} ms", nanoseconds / 1e6);
  return fmt::format("{:.1f} s", nanoseconds / 1e9);
}

std::string values_of(const protocol::ImportanceKeyInfo& info) {
  if (*info.choices != '\0') return replaced(info.choices, '|', ", ");
  if (info.high == UINT64_MAX) return "a whole number";
  return fmt::format("a number from {} to {}", info.low, info.high);
}

std::string values_of(const protocol::OptionInfo& info) {
  using protocol::OptionKind;
  const auto values = [&info]() -> std::string {
    switch (info.kind) {
      case OptionKind::kText:
        return "text";
      case OptionKind::kPaths:
        return "paths separated by colons";
      case OptionKind::kBytes:
        return info.high == protocol::kNoLimit
                   ? fmt::format("a size of at least {}", size_literal(info.low))
                   : fmt::format("a size from {} to {}", size_literal(info.low),
                                 size_literal(info.high));
      case OptionKind::kNumber:
        return fmt::format("a number from {} to {}", info.low, info.high);
      case OptionKind::kChoice:
        return replaced(info.choices, '|', ", ");
      case OptionKind::kSwitch:
        return "on or off";
      case OptionKind::kImportance:
        return "off, loss, iis, or iis:KEY=VALUE,...";
    }
    return "";
  };
  return values() + (info.autos ? ", or auto" : "");
}

const protocol::MetricInfo* find_metric(std::string_view name) {
  for (const auto& metric : protocol::kSessionMetrics) {
    if (name == metric.name) return &metric;
  }
  for (const auto& metric : protocol::kClientMetrics) {
    if (name == metric.name) return &metric;
  }
  return nullptr;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string wrapped(std::string_view text, std::string_view margin, size_t width) {
  std::string out;
  std::string line;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && margin.size() + line.size() + 1 + word.size() > width) {
      out.append(margin).append(line).append("\n");
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) out.append(margin).append(line).append("\n");
  return out;
}

std::string columns(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (size_t at = 0; at < row.size(); ++at) widths[at] = std::max(widths[at], width(row[at]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t at = 0; at < row.size(); ++at) {
      const std::string pad(widths[at] - width(row[at]), ' ');
      const bool right = !alignment.empty() && alignment[std::min(at, alignment.size() - 1)] == 'r';
      if (at > 0) line += "  ";
      line += right ? pad + row[at] : row[at] + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace sluice::cli
