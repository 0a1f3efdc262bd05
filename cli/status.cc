#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "cli/optimizer_client.h"
#include "cli/program.h"
#include "cli/run_settings.h"
#include "cli/text.h"
#include "protocol/metrics.h"

namespace sluice::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kWatchInterval{1};
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

int report_error(const Reply& reply) { return failed(kExitProblem, problem_text(reply)); }

using Rows = std::vector<std::vector<std::string>>;

// The leading columns of known tables; other fields follow in the order of the JSON.
struct Table {
  const char* name;
  std::vector<const char*> columns;  // "field", or "field=title"
  std::vector<const char*> hidden;
};

const std::vector<Table>& known_tables() {
  static const std::vector<Table> kTables = {
      {"jobs", {"session", "pid", "processes", "files", "mappings", "command"}, {}},
      {"files", {"file", "bytes=size", "state", "in_flight", "path", "why"}, {"device"}},
      {"streams",
       {"file", "session", "readers", "position=reader at", "frontier", "ahead", "target",
        "in_flight_bytes", "rate_bytes_s"},
       {}},
      {"datasets",
       {"dataset", "session", "samples", "known=places known", "epoch", "taken", "order=of",
        "ahead_bytes", "name"},
       {}},
      {"importance",
       {"session", "dataset", "epoch", "selected", "known=values known", "h_hits=H hits",
        "l_exact=L exact", "l_substituted=L substituted", "misses", "broken=lost hits", "benefit",
        "heap_swaps"},
       {"reported", "refused", "displaced"}},
      {"stage",
       {"copies", "used_bytes", "budget_bytes", "ahead_bytes", "retained_bytes", "policy",
        "fetched_files=fetched", "checks", "drops", "failures", "last_failure"},
       {}},
      {"mounts",
       {"device", "type", "off", "bandwidth_bytes_s", "latency_ns", "depth", "in_flight",
        "block_bytes", "read_ahead_bytes=kernel read-ahead"},
       {}},
  };
  return kTables;
}

enum class Unit { kNone, kBytes, kBytesPerSecond, kNanoseconds, kSeconds };

constexpr size_t kLongest = 60;  // characters of a path or command; --json has the whole text
constexpr double kNoFigure = 4611686018427387904.0;  // 2^62: "no limit", "not yet"

template <size_t kCount>
bool one_of(std::string_view name, const char* const (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Unit unit_of(std::string_view name) {
  static constexpr const char* kByteNames[] = {"ahead",    "budget", "bytes",  "distance",
                                               "frontier", "length", "opened", "offset",
                                               "position", "size",   "target"};
  if (name.ends_with("_bytes_s")) return Unit::kBytesPerSecond;
  const protocol::MetricInfo* metric = find_metric(name);
  const std::string_view unit = metric != nullptr ? metric->unit : "";
  if (unit == "bytes" || name.ends_with("_bytes") || one_of(name, kByteNames)) {
    return Unit::kBytes;
  }
  if (unit == "ns" || name.ends_with("_ns")) return Unit::kNanoseconds;
  return name.ends_with("_s") ? Unit::kSeconds : Unit::kNone;
}

// The name without its unit, in words: "stall_ns" is "stall".
std::string label(std::string_view name) {
  for (const std::string_view tail : {"_bytes_s", "_bytes", "_ns", "_s"}) {
    if (!name.ends_with(tail)) continue;
    name.remove_suffix(tail.size());
    break;
  }
  return one_line(replaced(name, '_', " "));
}

std::string shown_number(std::string_view name, const Json& value) {
  const auto number = value.get<double>();
  const Unit unit = unit_of(name);
  if (unit != Unit::kNone && !(number < kNoFigure)) return "-";
  if (number == 0 && (name == "bandwidth_bytes_s" || name == "latency_ns")) return "-";
  switch (unit) {
    case Unit::kBytes:
      return format_bytes(number);
    case Unit::kBytesPerSecond:
      return format_bytes(number) + "/s";
    case Unit::kNanoseconds:
      return format_time(number);
    case Unit::kSeconds:
      return format_time(number * 1e9);
    case Unit::kNone:
      break;
  }
  if (name == "device" && value.is_number_unsigned()) {
    const auto device = value.get<dev_t>();
    return fmt::format("{}:{}", major(device), minor(device));
  }
  return value.is_number_float() ? fmt::format("{:.2f}", number) : value.dump();
}

// A path's end is more informative than its beginning.
std::string shortened(std::string_view name, std::string text) {
  if (text.size() <= kLongest) return text;
  return name == "path" ? "..." + text.substr(text.size() - kLongest)
                        : text.substr(0, kLongest) + "...";
}

std::string shown(std::string_view name, const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return shortened(name, one_line(value.get_ref<const std::string&>()));
  if (value.is_number()) return shown_number(name, value);
  if (!value.is_array()) return "-";
  std::string list;
  for (const Json& one : value) list += (list.empty() ? "" : " ") + shown("", one);
  return list.empty() ? "-" : list;
}

// "name value, name value"; figures that are zero are left out.
std::string sentence(const Json& figures) {
  std::string text;
  for (const auto& [name, value] : figures.items()) {
    if (value.is_structured() || (value.is_number() && value.get<double>() == 0)) continue;
    if (!text.empty()) text += ", ";
    text += name == "bytes" ? shown(name, value) : label(name) + " " + shown(name, value);
  }
  return text.empty() ? "nothing yet" : text;
}

bool in_table(const Json& value) {
  return !value.is_object() && !(value.is_array() && !value.empty() && value[0].is_structured());
}

struct Column {
  std::string field, title;
};

std::vector<Column> columns_of(const Table* known, const std::vector<Json>& rows) {
  std::vector<Column> columns;
  std::vector<std::string> others;  // fields that are no further columns
  if (known != nullptr) {
    others.assign(known->hidden.begin(), known->hidden.end());
    for (const std::string_view column : known->columns) {
      const size_t end = column.find('=');
      const std::string field(column.substr(0, end));
      others.push_back(field);
      if (std::any_of(rows.begin(), rows.end(),
                      [&](const Json& row) { return row.contains(field); })) {
        columns.push_back(
            {field, end < column.size() ? std::string(column.substr(end + 1)) : label(field)});
      }
    }
  }
  for (const Json& row : rows) {
    for (const auto& [name, value] : row.items()) {
      if (!in_table(value) || std::find(others.begin(), others.end(), name) != others.end())
        continue;
      columns.push_back({name, label(name)});
      others.push_back(name);
    }
  }
  return columns;
}

std::string table_text(const std::string& name, const std::vector<Json>& rows) {
  const auto known = std::find_if(known_tables().begin(), known_tables().end(),
                                  [&name](const Table& table) { return name == table.name; });
  const std::vector<Column> titled =
      columns_of(known != known_tables().end() ? &*known : nullptr, rows);
  Rows cells(1);
  for (const Column& column : titled) cells[0].push_back(column.title);
  std::string alignment;
  for (const auto& [field, title] : titled) {
    const bool numbers = std::all_of(rows.begin(), rows.end(), [&field = field](const Json& row) {
      return !row.contains(field) || row[field].is_number();
    });
    alignment += numbers ? 'r' : 'l';
  }
  for (const Json& row : rows) {
    std::vector<std::string>& line = cells.emplace_back();
    for (const auto& [field, title] : titled) {
      line.push_back(row.contains(field) ? shown(field, row[field]) : "-");
    }
  }
  return columns(cells, alignment);
}

// How far the prefetch is ahead of the reader, the most important figure.
void add_ahead(Json* row) {
  const auto position = row->find("position");
  const auto frontier = row->find("frontier");
  if (position == row->end() || frontier == row->end()) return;
  if (!position->is_number() || !frontier->is_number()) return;
  const auto ahead = frontier->get<double>() - position->get<double>();
  (*row)["ahead"] = std::max(0.0, ahead);
}

std::string section(const std::string& name, const Json& list) {
  std::vector<Json> rows;
  for (const Json& row : list) {
    if (!row.is_object()) continue;
    rows.push_back(row);
    add_ahead(&rows.back());
  }
  std::string text = fmt::format("\n{}\n", label(name));
  if (rows.empty()) return text + "  none\n";
  text += table_text(name, rows);
  for (size_t index = 0; index < rows.size(); ++index) {
    for (const auto& [field, value] : rows[index].items()) {
      if (!value.is_object()) continue;
      const std::string whose = rows[index].contains("session")
                                    ? "session " + shown("session", rows[index]["session"])
                                    : std::to_string(index + 1);
      text += wrapped(fmt::format("{}, {}: {}", whose, label(field), sentence(value)), "  ", 100);
    }
  }
  return text;
}

// The optimizer's status as tables, with line ends, safe for a terminal. The JSON need only be an
// object: unknown names are shown as they are, missing ones are left out.
std::string status_tables(const Json& status) {
  Rows heads;
  std::string others;
  for (const auto& [name, value] : status.items()) {
    const bool known = std::any_of(known_tables().begin(), known_tables().end(),
                                   [&name = name](const Table& one) { return name == one.name; });
    if (known && !value.is_array()) continue;  // one row, or none
    if (value.is_array()) {
      if (!known) others += section(name, value);
    } else {
      const std::string title = name == "version" ? "protocol" : label(name);
      heads.push_back({title, value.is_object() ? sentence(value) : shown(name, value)});
    }
  }
  std::string text = columns(heads, "l");
  for (const Table& table : known_tables()) {
    const auto list = status.find(table.name);
    if (list == status.end()) continue;
    if (list->is_array()) text += section(table.name, *list);
    if (list->is_object()) text += section(table.name, Json::array({*list}));
  }
  return text + others;
}

}  // namespace

int print_status(const StatusOptions& options) {
  if (options.prometheus) return print_metrics(options);
  const std::string socket = socket_of(chosen_socket(options.socket));
  for (bool first = true;; first = false) {
    const Reply reply = ask_status(socket);
    // While watching, the optimizer's end is no error.
    if (reply.answer == Answer::kNone && !first) return 0;
    if (reply.answer != Answer::kGood) return report_error(reply);
    const Json status = Json::parse(reply.text, nullptr, false);
    if (!status.is_object())
      return report_error({Answer::kProblem, "the optimizer's status is no JSON"});
    if (options.json) {
      fmt::print("{}\n", status.dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      if (options.watch && isatty(STDOUT_FILENO) != 0) fmt::print("{}", kClearScreen);
      fmt::print("{}", status_tables(status));
    }
    if (fflush(stdout) != 0) return kExitProblem;
    if (!options.watch) return 0;
    std::this_thread::sleep_for(kWatchInterval);
  }
}

int stop(const std::string& socket) {
  const Reply reply = stop_optimizer(socket_of(chosen_socket(socket)));
  switch (reply.answer) {
    case Answer::kGood:
      fmt::print("the optimizer has ended\n");
      return 0;
    case Answer::kNone:
      fmt::print("{}\n", reply.text);
      return 0;
    case Answer::kProblem:
      break;
  }
  return report_error(reply);
}

}  // namespace sluice::cli
