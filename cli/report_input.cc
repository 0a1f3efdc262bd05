#include "cli/report_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "cli/text.h"

namespace sluice::cli {
namespace {

using Json = nlohmann::ordered_json;
using protocol::MetricInfo;

constexpr int kMaxDepth = 8;           // of nesting; reports have 3
constexpr size_t kMaxPoints = 1024;    // drawn; of more, only every nth
constexpr size_t kMaxEpochs = 1024;    // rows of a table
constexpr size_t kMaxFigures = 1024;   // likewise
constexpr size_t kMaxParts = 10;       // of a dataset, likewise
constexpr size_t kMaxPairs = 4096;     // dots of a picture
constexpr double kMaxCount = 1e15;     // substitutions
constexpr size_t kShownName = 60;      // characters of a name in an error message
constexpr size_t kShownProblem = 120;  // likewise, of the parser's message

struct Bad : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A name, known to be UTF-8, for an error message.
std::string shown(const std::string& name) {
  if (name.size() <= kShownName) return one_line(name);
  size_t end = kShownName;
  while ((static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // no partial characters
  return one_line(name.substr(0, end)) + "...";
}

// "[json.exception.parse_error.101] parse error at line 1, column 1: ...; last read: ...". The last
// part may be anything, of any length.
std::string parser_said(const std::string& text) {
  const size_t from = text.find("] ");
  const std::string said = from == std::string::npos ? text : text.substr(from + 2);
  return said.substr(0, std::min(said.find("; last read"), kShownProblem));
}

double number(const Json& value, const std::string& what) {
  if (!value.is_number()) throw Bad(fmt::format("{} is not a number", shown(what)));
  return value.get<double>();  // finite: the parser refuses other values
}

double amount(const Json& value, const std::string& what) {
  const double got = number(value, what);
  if (got < 0) throw Bad(fmt::format("{} is less than 0", shown(what)));
  return got;
}

// Fills one column for each field from an object of arrays. Missing fields are 0.
template <size_t kFields>
void read_table(const Json& root, const char* table, const MetricInfo (&fields)[kFields],
                std::array<std::vector<double>, kFields>* columns) {
  const auto at = root.find(table);
  if (at == root.end()) return;
  if (!at->is_object()) throw Bad(fmt::format("{} is not an object", table));
  std::optional<size_t> rows;
  for (size_t field = 0; field < kFields; ++field) {
    const auto list = at->find(fields[field].name);
    if (list == at->end()) continue;
    const std::string name = fmt::format("{}.{}", table, fields[field].name);
    if (!list->is_array()) throw Bad(name + " is not an array");
    if (rows && *rows != list->size()) {
      throw Bad(fmt::format("{} has {} values, others {}", name, list->size(), *rows));
    }
    rows = list->size();
    for (const Json& value : *list) (*columns)[field].push_back(amount(value, name));
  }
  for (std::vector<double>& column : *columns) column.resize(rows.value_or(0));
}

void demand_order(const std::vector<double>& times, const char* name) {
  if (!std::is_sorted(times.begin(), times.end())) {
    throw Bad(fmt::format("{} is not ascending", name));
  }
}

// No screen can show more points. The last one stays, since it has the totals.
void thin(RunReport* run) {
  const size_t points = run->of(protocol::HistoryField::time_ns).size();
  if (points <= kMaxPoints) return;
  const size_t step = (points + kMaxPoints - 1) / kMaxPoints;
  for (std::vector<double>& column : run->history) {
    const double last = column.back();
    size_t left = 0;
    for (size_t at = 0; at + 1 < points; at += step) column[left++] = column[at];
    column.resize(left);
    column.push_back(last);
  }
}

std::vector<double> amounts(const Json& table, const std::string& name, size_t length,
                            double most) {
  std::vector<double> values;
  const auto list = table.find(name);
  if (list == table.end()) return values;
  const std::string what = "substitutions." + name;
  if (!list->is_array()) throw Bad(what + " is not an array");
  if (list->size() > length) throw Bad(fmt::format("{} has {} values", what, list->size()));
  for (const Json& value : *list) {
    values.push_back(amount(value, what));
    if (values.back() > most) throw Bad(what + " has too large a value");
  }
  return values;
}

void read_substitutions(const Json& root, RunReport::Substitutions* found) {
  const auto table = root.find("substitutions");
  if (table == root.end()) return;
  if (!table->is_object()) throw Bad("substitutions is not an object");
  const auto one = [&table](const char* name) {
    const auto at = table->find(name);
    return at == table->end() ? 0 : amount(*at, std::string("substitutions.") + name);
  };
  found->seen = std::min(one("seen"), kMaxCount);
  const double parts = one("parts");
  if (parts > kMaxParts) throw Bad("substitutions.parts is too large");
  found->parts = static_cast<size_t>(parts);
  found->counts = amounts(*table, "counts", kMaxParts * kMaxParts, kMaxCount);
  found->requested = amounts(*table, "requested", kMaxPairs, UINT32_MAX);
  found->trained = amounts(*table, "trained", kMaxPairs, UINT32_MAX);
  if (found->counts.size() != found->parts * found->parts) {
    throw Bad("substitutions.counts has not a value for each two parts");
  }
  if (found->requested.size() != found->trained.size()) {
    throw Bad("substitutions.requested and substitutions.trained differ in length");
  }
}

RunReport run_report(const Json& root) {
  RunReport run;
  const auto read_figures = [&](std::span<const MetricInfo> metrics) {
    for (const MetricInfo& metric : metrics) {
      const auto at = root.find(metric.name);
      if (at != root.end()) run.figures.push_back({&metric, amount(*at, metric.name)});
    }
  };
  read_figures(protocol::kSessionMetrics);
  read_figures(protocol::kClientMetrics);
  read_table(root, "history", protocol::kHistoryFields, &run.history);
  read_table(root, "epochs", protocol::kEpochFields, &run.epochs);
  demand_order(run.of(protocol::HistoryField::time_ns), "history.time_ns");
  const size_t epochs = run.of(protocol::EpochField::epoch).size();
  if (epochs > kMaxEpochs) throw Bad(fmt::format("{} epochs are too many", epochs));
  run.epochs_seen = static_cast<double>(epochs);
  if (const auto at = root.find("epochs"); at != root.end() && at->contains("seen")) {
    run.epochs_seen = std::max(run.epochs_seen, amount(at->at("seen"), "epochs.seen"));
  }
  if (const auto at = root.find("processes"); at != root.end()) {
    run.processes = amount(*at, "processes");
  }
  read_substitutions(root, &run.substitutions);
  thin(&run);
  return run;
}

// Older ones of bench.json do not say whether the goal is the least value. It is for shares, hit
// ratios, speed-ups and the contributions of parts; for all others it is the highest.
bool wants_high(const std::string& name) {
  for (const char* word : {"_share", "_speedup", "_ablation_"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  constexpr std::string_view kHit = "_hit_";  // at a cache of so many percent; not hit_over_...
  const size_t hit = name.find(kHit);
  return hit != std::string::npos && hit + kHit.size() < name.size() &&
         name[hit + kHit.size()] >= '0' && name[hit + kHit.size()] <= '9';
}

BenchFigure bench_figure(const std::string& name, const Json& entry) {
  const auto given = [&](const char* key) {
    const auto at = entry.find(key);
    return at == entry.end() || at->is_null()
               ? std::nullopt
               : std::optional(number(*at, fmt::format("{}.{}", name, key)));
  };
  BenchFigure figure;
  figure.name = name;
  const auto least = entry.find("least");
  if (least != entry.end() && !least->is_boolean()) {
    throw Bad(fmt::format("{}.least is neither true nor false", shown(name)));
  }
  figure.least = least == entry.end() ? wants_high(name) : least->get<bool>();
  const std::optional<double> value = given("value");
  if (!value) throw Bad(fmt::format("{} has no value", shown(name)));
  figure.value = *value;
  figure.goal = given("goal");
  figure.low = given("low").value_or(figure.value);
  figure.high = given("high").value_or(figure.value);
  if (const auto unit = entry.find("unit"); unit != entry.end()) {
    if (!unit->is_string()) throw Bad(fmt::format("{}.unit is not text", shown(name)));
    figure.unit = unit->get<std::string>();
  }
  return figure;
}

BenchReport bench_report(const Json& root) {
  if (root.size() > kMaxFigures) throw Bad(fmt::format("{} figures are too many", root.size()));
  BenchReport bench;
  for (const auto& [name, entry] : root.items()) bench.push_back(bench_figure(name, entry));
  return bench;
}

ReportInput recognised(const Json& root) {
  if (root.is_object()) {
    for (const auto& [name, value] : root.items()) {
      if (find_metric(name) != nullptr) return run_report(root);
    }
    const bool objects =
        std::all_of(root.begin(), root.end(), [](const Json& value) { return value.is_object(); });
    if (objects && !root.empty()) return bench_report(root);
  }
  throw Bad("neither a report of a run (SLUICE_REPORT) nor a bench.json");
}

}  // namespace

double RunReport::figure(const char* name) const {
  for (const Figure& figure : figures) {
    if (strcmp(figure.metric->name, name) == 0) return figure.value;
  }
  return 0;
}

std::optional<bool> BenchFigure::met() const {
  if (!goal) return std::nullopt;
  return least ? value >= *goal : value <= *goal;
}

std::optional<ReportInput> parse_report(const std::string& text, std::string* problem) {
  try {
    const Json root = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) throw Bad("nested too deeply for a report");
      return true;
    });
    return recognised(root);
  } catch (const Bad& bad) {
    *problem = one_line(bad.what());
  } catch (const Json::exception& bad) {
    *problem = "not JSON: " + one_line(parser_said(bad.what()));
  }
  return std::nullopt;
}

}  // namespace sluice::cli
