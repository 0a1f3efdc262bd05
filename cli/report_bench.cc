// The page of a bench.json: every figure beside its goal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report_chart.h"
#include "cli/report_page.h"

namespace sluice::cli {
namespace {

constexpr double kGoalAt = 60;  // percent of a bar

// Five significant digits, as bench.json has them, or the whole number.
std::string number_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e15) return fmt::format("{:.4g}", value);
  const int decimals = size >= 1e4 ? 0 : size >= 1000 ? 1 : size >= 100 ? 2 : size >= 10 ? 3 : 4;
  if (size > 0 && size < 0.001) return fmt::format("{:.3g}", value);
  return grouped(value, decimals);
}

// The length of a value's bar, in percent: goals are at the same place in all bars.
double place(double value, double goal) {
  if (goal == 0) return value <= 0 ? 0 : 100;
  return std::clamp(value / goal * kGoalAt, 0.0, 100.0);
}

std::string bar(const BenchFigure& figure) {
  if (!figure.goal) return "<td class=\"bar wide none\"></td>";
  const double goal = *figure.goal;
  const double low = place(figure.low, goal);
  const double high = place(figure.high, goal);
  return fmt::format(
      "<td class=\"bar wide {0}\"><svg viewBox=\"0 0 100 12\" preserveAspectRatio=\"none\" "
      "role=\"img\" aria-label=\"{1} of a goal of {2}\"><rect x=\"0\" y=\"0\" width=\"{3:.2f}\" "
      "height=\"12\"/><line class=\"spread\" x1=\"{4:.2f}\" x2=\"{5:.2f}\" y1=\"6\" y2=\"6\"/>"
      "<line class=\"goal\" x1=\"{6:g}\" x2=\"{6:g}\" y1=\"0\" y2=\"12\"/></svg></td>",
      *figure.met() ? "teal" : "red", number_text(figure.value), number_text(goal),
      place(figure.value, goal), low, high, kGoalAt);
}

std::string row(const BenchFigure& figure) {
  const std::optional<bool> met = figure.met();
  const std::string goal =
      figure.goal ? fmt::format("{} {}", figure.least ? "≥" : "≤", number_text(*figure.goal))
                  : "none";
  return fmt::format(
      "<tr><th class=\"wide\" scope=\"row\">{}</th>"
      "<td class=\"num\" data-name=\"value\"><span>{} <span class=\"none\">{}</span></span></td>"
      "<td class=\"num\" data-name=\"goal\">{}</td>"
      "<td class=\"wide\" data-name=\"verdict\"><span class=\"word {}\">{}</span></td>"
      "<td class=\"num wide\" data-name=\"spread\">{} – {}</td>{}</tr>\n",
      escaped(figure.name), number_text(figure.value), escaped(figure.unit), goal,
      met ? (*met ? "good" : "bad") : "none", met ? (*met ? "met" : "missed") : "reported",
      number_text(figure.low), number_text(figure.high), bar(figure));
}

}  // namespace

std::string bench_page(const BenchReport& bench, const std::string& source) {
  size_t met = 0;
  size_t missed = 0;
  std::string rows;
  for (const BenchFigure& figure : bench) {
    if (figure.met()) ++(*figure.met() ? met : missed);
    rows += row(figure);
  }
  const auto count = [](size_t number) { return grouped(static_cast<double>(number), 0); };
  std::string body =
      tiles_html({{"Figures", count(bench.size()), "in this file", ""},
                  {"Goals met", count(met), "", "good"},
                  {"Goals missed", count(missed), "", missed > 0 ? "bad" : ""},
                  {"Reported", count(bench.size() - met - missed), "without a goal", ""}});
  body +=
      "<section class=\"card\" id=\"figures\"><h2>Figures and goals</h2><p class=\"note\">"
      "Value: the median of paired runs; spread: the lowest and the highest of them. In the "
      "bars the upright mark is the goal, the thin line the spread.</p>"
      "<table class=\"stack\"><thead><tr><th>figure</th><th class=\"num\">value</th>"
      "<th class=\"num\">goal</th><th>verdict</th><th class=\"num\">spread</th>"
      "<th class=\"bar\">value against goal</th></tr></thead><tbody>\n" +
      rows + "</tbody></table></section>\n";
  return page("Sluice: benchmarks", source, body);
}

}  // namespace sluice::cli
