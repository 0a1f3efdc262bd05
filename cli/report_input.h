// The input of `sluice report`: untrusted files, checked here and nowhere else.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/history.h"

namespace sluice::cli {

// A report as libsluice.so writes it. Numbers are finite and not negative; columns of a table are
// equally long; times do not decrease. What the file lacks is 0 or empty.
struct RunReport {
  struct Figure {
    const protocol::MetricInfo* metric;
    double value;
  };
  std::vector<Figure> figures;  // in the order of the tables of protocol/metrics.h
  std::array<std::vector<double>, protocol::kHistoryFieldCount> history;
  std::array<std::vector<double>, protocol::kEpochFieldCount> epochs;
  double epochs_seen = 0;
  struct Substitutions {
    double seen = 0;
    size_t parts = 0;            // of the dataset, of equal lengths
    std::vector<double> counts;  // `parts` of the trained sample's for each of the requested one's
    std::vector<double> requested, trained;  // some of the pairs: indices
  };
  Substitutions substitutions;
  double processes = 1;  // programs whose figures are summed, not counting their forks

  const std::vector<double>& of(protocol::HistoryField field) const {
    return history[static_cast<size_t>(field)];
  }
  const std::vector<double>& of(protocol::EpochField field) const {
    return epochs[static_cast<size_t>(field)];
  }
  double figure(const char* name) const;  // 0 if there is none of that name
};

// A figure of bench.json.
struct BenchFigure {
  std::string name, unit;
  double value = 0;
  std::optional<double> goal;  // upper limit, or lower limit if `least`
  bool least = false;
  double low = 0, high = 0;

  // Whether the goal is met; nullopt without one.
  std::optional<bool> met() const;
};
using BenchReport = std::vector<BenchFigure>;

using ReportInput = std::variant<RunReport, BenchReport>;

// The content decides which of the two it is. nullopt, and *problem in one line, if it is neither.
std::optional<ReportInput> parse_report(const std::string& text, std::string* problem);

}  // namespace sluice::cli
