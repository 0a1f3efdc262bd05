// What `sluice report` reads: files that may be anything, checked here and nowhere else.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/history.h"

namespace sluice::cli {

// A report as libsluice.so writes it. Numbers are finite and not negative; columns of a table are
// equally long; times do not go backwards. What the file does not have is 0 or empty.
struct RunReport {
  struct Figure {
    const protocol::MetricInfo* metric;
    double value;
  };
  std::vector<Figure> figures;  // in the order of the tables of protocol/metrics.h
  std::array<std::vector<double>, protocol::kHistoryFieldCount> history;
  std::array<std::vector<double>, protocol::kEpochFieldCount> epochs;
  double epochs_seen = 0;
  double processes = 1;  // whose figures these are, besides those that they forked

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
  std::optional<double> goal;  // at most, or at least where `least`
  bool least = false;
  double low = 0, high = 0;

  // Whether the goal is met; nullopt without one.
  std::optional<bool> met() const;
};
using BenchReport = std::vector<BenchFigure>;

using ReportInput = std::variant<RunReport, BenchReport>;

// Of the two which it is says the content. nullopt, and *problem in one line, if it is neither.
std::optional<ReportInput> parse_report(const std::string& text, std::string* problem);

}  // namespace sluice::cli
