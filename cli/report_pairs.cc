// What a job with substitutes trained in place of what its sampler had drawn.
#include <fmt/format.h>

#include <algorithm>

#include "cli/report_chart.h"
#include "cli/report_page.h"

namespace sluice::cli {
namespace {

using Substitutions = RunReport::Substitutions;

// "20-40 %" of a dataset, by index.
std::string part_text(size_t part, size_t parts) {
  const auto edge = [parts](size_t at) {
    return grouped(100.0 * static_cast<double>(at) / static_cast<double>(parts), 1);
  };
  return fmt::format("{}-{} %", edge(part), edge(part + 1));
}

std::string cell(const std::string& name, const std::string& text) {
  return fmt::format("<td class=\"num\" data-name=\"{}\">{}</td>", name, text);
}

std::string table(const Substitutions& found) {
  std::string text =
      "<table class=\"stack\"><thead><tr><th>drawn in</th><th class=\"num\">replaced</th>";
  for (size_t part = 0; part < found.parts; ++part) {
    text += fmt::format("<th class=\"num\">from {}</th>", part_text(part, found.parts));
  }
  text += "</tr></thead><tbody>\n";
  for (size_t row = 0; row < found.parts; ++row) {
    const auto begin = found.counts.begin() + static_cast<std::ptrdiff_t>(row * found.parts);
    double all = 0;
    for (size_t part = 0; part < found.parts; ++part) all += begin[static_cast<long>(part)];
    text +=
        fmt::format("<tr><th class=\"wide\" scope=\"row\">{}</th>", part_text(row, found.parts)) +
        cell("replaced", grouped(all, 0));
    for (size_t part = 0; part < found.parts; ++part) {
      text += cell("from " + part_text(part, found.parts),
                   percent(begin[static_cast<long>(part)], all));
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table>";
}

std::string picture(const Substitutions& found) {
  double most = 1;
  for (const auto* samples : {&found.requested, &found.trained}) {
    for (const double sample : *samples) most = std::max(most, sample);
  }
  const std::string which =
      static_cast<double>(found.requested.size()) < found.seen
          ? fmt::format("{} of them, drawn evenly: ",
                        grouped(static_cast<double>(found.requested.size()), 0))
          : "";
  return scatter_html({.name = which + "the drawn sample's index (across), its substitute's (up)",
                       .color = "violet",
                       .most = most,
                       .up = "trained",
                       .x = found.requested,
                       .y = found.trained});
}

}  // namespace

std::string substitutions_html(const RunReport& run) {
  const Substitutions& found = run.substitutions;
  if (found.seen <= 0) return "";
  const std::string note = fmt::format(
      "{} times a sample was trained in place of the one that the sampler had drawn: by the part "
      "of "
      "the dataset in which that was, and from which its substitutes came.",
      grouped(found.seen, 0));
  return "<section class=\"card\" id=\"substitutions\"><h2>Trained in place of others</h2>"
         "<p class=\"note\">" +
         note + "</p>" + table(found) + picture(found) + "</section>\n";
}

}  // namespace sluice::cli
