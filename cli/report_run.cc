// The page of a run: its totals, its course over time, and each epoch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/report_chart.h"
#include "cli/report_page.h"

namespace sluice::cli {
namespace {

using protocol::EpochField;
using protocol::HistoryField;

constexpr size_t kBins = 120;        // of a chart of rates
constexpr size_t kRowsInSight = 16;  // epochs; further ones are folded away
constexpr double kNs = 1e9;

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

double last(const std::vector<double>& values) { return values.empty() ? 0 : values.back(); }
double most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

std::string bytes(double value) { return value_text(value, Quantity::kBytes); }
std::string seconds(double ns) { return value_text(ns / kNs, Quantity::kSeconds); }

// Hits, late ones and misses, in samples or bytes.
struct Counted {
  bool samples = false;  // else bytes
  double hit = 0, late = 0, miss = 0, unknown = 0;
  double all() const { return hit + late + miss + unknown; }
  double judged() const { return hit + late + miss; }
  std::string text(double value) const { return samples ? grouped(value, 0) : bytes(value); }
};

bool has_samples(const RunReport& run) {
  return sum(run.of(EpochField::sample_hits)) + sum(run.of(EpochField::sample_late)) +
             sum(run.of(EpochField::sample_misses)) + sum(run.of(EpochField::sample_unknown)) >
         0;
}

Counted counted(const RunReport& run, size_t epoch, bool samples) {
  const auto of = [&](EpochField field) { return run.of(field)[epoch]; };
  Counted out;
  out.samples = samples;
  if (samples) {
    out.hit = of(EpochField::sample_hits);
    out.late = of(EpochField::sample_late);
    out.miss = of(EpochField::sample_misses);
    out.unknown = of(EpochField::sample_unknown);
  } else {
    const double read = of(EpochField::read_bytes);
    out.hit = std::min(of(EpochField::memory_bytes), read);
    out.late = std::min(of(EpochField::late_bytes), read - out.hit);
    out.miss = read - out.hit - out.late;
  }
  return out;
}

Counted counted(const RunReport& run) {
  Counted total;
  total.samples = has_samples(run);
  for (size_t epoch = 0; epoch < run.of(EpochField::epoch).size(); ++epoch) {
    const Counted one = counted(run, epoch, total.samples);
    total.hit += one.hit;
    total.late += one.late;
    total.miss += one.miss;
    total.unknown += one.unknown;
  }
  return total;
}

std::vector<double> in_seconds(const std::vector<double>& ns) {
  std::vector<double> out;
  out.reserve(ns.size());
  for (const double value : ns) out.push_back(value / kNs);
  return out;
}

// A growing total as a rate: its growth per second in each of kBins parts of the time.
struct Rates {
  std::vector<double> x, y;
};
Rates rates(const std::vector<double>& x, const std::vector<double>& total) {
  Rates out;
  if (x.size() < 2 || x.back() <= x.front()) return out;
  const size_t bins = std::min(kBins, x.size() - 1);
  const double width = (x.back() - x.front()) / static_cast<double>(bins);
  size_t at = 0;
  const auto value_at = [&](double time) {
    while (at + 2 < x.size() && x[at + 1] <= time) ++at;
    const double span = x[at + 1] - x[at];
    const double share = span <= 0 ? 1 : std::clamp((time - x[at]) / span, 0.0, 1.0);
    return total[at] + share * (total[at + 1] - total[at]);
  };
  double before = value_at(x.front());
  for (size_t bin = 0; bin < bins; ++bin) {
    const double begin = x.front() + width * static_cast<double>(bin);
    const double now = value_at(begin + width);
    out.x.push_back(begin);
    out.y.push_back(std::max(0.0, (now - before) / width));
    before = now;
  }
  out.x.push_back(x.back());
  out.y.push_back(out.y.back());
  return out;
}

std::vector<Mark> epoch_marks(const RunReport& run) {
  std::vector<Mark> marks;
  const std::vector<double>& begin = run.of(EpochField::begin_ns);
  if (begin.size() < 2) return marks;
  for (size_t epoch = 0; epoch < begin.size(); ++epoch) {
    marks.push_back({begin[epoch] / kNs, grouped(run.of(EpochField::epoch)[epoch], 0)});
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.x < b.x; });
  return marks;
}

// A chart over the time of the run.
std::string chart_of(const RunReport& run, const char* id, const char* title, const char* note,
                     Quantity quantity, std::vector<Curve> curves) {
  return chart_html({.id = id,
                     .title = title,
                     .note = note,
                     .quantity = quantity,
                     .x = in_seconds(run.of(HistoryField::time_ns)),
                     .curves = std::move(curves)});
}

std::string reader_chart(const RunReport& run) {
  const std::vector<double>& read = run.of(HistoryField::read_bytes);
  std::vector<double> frontier = run.of(HistoryField::ahead_bytes);
  const double ahead = most(frontier);
  for (size_t i = 0; i < frontier.size(); ++i) frontier[i] += read[i];
  return chart_html(
      {.id = "timeline",
       .title = "Reader against frontier",
       .note = "What the job has read, and how far what is in memory reaches beyond it. Where the "
               "band is gone the job may have to wait for storage.",
       .quantity = Quantity::kBytes,
       .x = in_seconds(run.of(HistoryField::time_ns)),
       .curves = {{.name = "frontier, ahead of the reader by up to",
                   .color = "teal",
                   .y = frontier,
                   .value = bytes(ahead),
                   .filled = true,
                   .base = read},
                  {.name = "reader", .color = "blue", .y = read, .value = bytes(last(read))}},
       .marks = epoch_marks(run),
       .marks_name = "epoch"});
}

std::string queue_chart(const RunReport& run) {
  const std::vector<double>& flight = run.of(HistoryField::in_flight);
  const std::vector<double>& depth = run.of(HistoryField::depth);
  return chart_of(run, "queue", "Queue depth",
                  "Reads under way at a time, and how many the storage was judged to need.",
                  Quantity::kCount,
                  {{"under way, at most", "blue", flight, grouped(most(flight), 0), true},
                   {"wanted, at most", "violet", depth, grouped(most(depth), 0)}});
}

std::string bandwidth_chart(const RunReport& run) {
  const std::vector<double> x = in_seconds(run.of(HistoryField::time_ns));
  const Rates delivered = rates(x, run.of(HistoryField::precached_bytes));
  const Rates read = rates(x, run.of(HistoryField::read_bytes));
  const std::vector<double>& known = run.of(HistoryField::bandwidth);
  const auto rate = [](double value) { return value_text(value, Quantity::kBytesPerSecond); };
  // All curves of a chart need the same points in time.
  std::vector<double> limit;
  for (size_t i = 0, at = 0; i < delivered.x.size(); ++i) {
    while (at + 1 < x.size() && x[at + 1] <= delivered.x[i]) ++at;
    limit.push_back(known[at]);
  }
  return chart_html(
      {.id = "bandwidth",
       .title = "Bandwidth",
       .note = "What was read ahead from storage, what the job consumed, and the most that the "
               "storage was seen to deliver.",
       .quantity = Quantity::kBytesPerSecond,
       .x = delivered.x,
       .curves = {{"read ahead, at most", "teal", delivered.y, rate(most(delivered.y)), true, true},
                  {"consumed, at most", "blue", read.y, rate(most(read.y)), false, true},
                  {"storage", "violet", limit, rate(last(known))}}});
}

std::string stall_chart(const RunReport& run) {
  const std::vector<double>& stall = run.of(HistoryField::stall_ns);
  const double time = last(run.of(HistoryField::time_ns));
  const std::string share =
      last(stall) > 0 ? ", " + percent(last(stall), time) + " of the run" : "";
  return chart_of(
      run, "stall", "Stall",
      "Time that the job has waited for data, on the wall clock; overlapping waits count once.",
      Quantity::kSeconds,
      {{"so far", "red", in_seconds(stall), seconds(last(stall)) + share, true}});
}

std::string budget_chart(const RunReport& run) {
  const std::vector<double>& used = run.of(HistoryField::outstanding_bytes);
  const std::vector<double>& budget = run.of(HistoryField::budget_bytes);
  return chart_of(run, "budget", "Memory budget",
                  "Read ahead and not used yet, or being read, against what may be.",
                  Quantity::kBytes,
                  {{"in use, at most", "teal", used, bytes(most(used)), true},
                   {"budget", "violet", budget, bytes(last(budget))}});
}

std::string shares(const Counted& one) {
  std::string svg;
  double at = 0;
  const double all = one.all();
  const std::pair<const char*, double> parts[] = {
      {"teal", one.hit}, {"amber", one.late}, {"red", one.miss}, {"gray", one.unknown}};
  for (const auto& [color, value] : parts) {
    const double width = all > 0 ? value / all * 100 : 0;
    if (width > 0) {
      svg += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"12\"/>",
                         color, at, width);
    }
    at += width;
  }
  return fmt::format(
      "<td class=\"bar wide\"><svg viewBox=\"0 0 100 12\" preserveAspectRatio=\"none\" "
      "role=\"img\" "
      "aria-label=\"{} hit\">{}</svg></td>",
      percent(one.hit, one.judged()), svg);
}

std::string epoch_row(const RunReport& run, size_t epoch, bool samples, bool later) {
  const Counted one = counted(run, epoch, samples);
  const double took = run.of(EpochField::end_ns)[epoch] - run.of(EpochField::begin_ns)[epoch];
  const auto cell = [](const char* name, const std::string& text) {
    return fmt::format("<td class=\"num\" data-name=\"{}\">{}</td>", name, text);
  };
  return fmt::format("<tr><th class=\"wide\" scope=\"row\">epoch {}{}</th>",
                     grouped(run.of(EpochField::epoch)[epoch], 0), later ? " and later" : "") +
         shares(one) + cell("hit", one.text(one.hit)) + cell("late", one.text(one.late)) +
         cell("miss", one.text(one.miss)) +
         (samples ? cell("unknown", one.text(one.unknown)) : "") +
         cell("hit ratio", percent(one.hit, one.judged())) +
         cell("time", seconds(std::max(0.0, took))) + "</tr>\n";
}

std::string epochs_html(const RunReport& run) {
  const size_t epochs = run.of(EpochField::epoch).size();
  std::string text = "<section class=\"card\" id=\"epochs\"><h2>Hit, late, miss</h2>";
  if (epochs == 0) return text + "<p class=\"note\">Nothing was recorded.</p></section>\n";
  const bool samples = has_samples(run);
  text += fmt::format(
      "<p class=\"note\">{}</p><ul class=\"legend\"><li><i class=\"key teal\"></i>hit: in memory "
      "before it was wanted</li><li><i class=\"key amber\"></i>late: {}</li><li><i class=\"key "
      "red\"></i>miss: {}</li>{}</ul>",
      samples ? "Samples of each epoch, when a worker began them."
              : "Bytes of each pass over the data, when the reader came to them.",
      samples ? "still on its way" : "expected, not there yet", "not read ahead",
      samples ? "<li><i class=\"key gray\"></i>unknown: not seen before</li>" : "");
  const std::string head = fmt::format(
      "<table class=\"stack\"><thead><tr><th></th><th class=\"bar\">share</th><th class=\"num\">hit"
      "</th><th class=\"num\">late</th><th class=\"num\">miss</th>{}<th class=\"num\">hit "
      "ratio</th>"
      "<th class=\"num\">time</th></tr></thead><tbody>\n",
      samples ? "<th class=\"num\">unknown</th>" : "");
  text += head;
  for (size_t epoch = 0; epoch < epochs; ++epoch) {
    if (epoch == kRowsInSight) {
      text += fmt::format("</tbody></table><details><summary>{} more epochs</summary>{}",
                          epochs - epoch, head);
    }
    const bool later = epoch + 1 == epochs && run.epochs_seen > static_cast<double>(epochs);
    text += epoch_row(run, epoch, samples, later);
  }
  return text + "</tbody></table>" + (epochs > kRowsInSight ? "</details>" : "") + "</section>\n";
}

// Figures that are 0 if there was no problem.
std::string notices_html(const RunReport& run) {
  std::string items;
  for (const RunReport::Figure& figure : run.figures) {
    const std::string name = figure.metric->name;
    const bool counts = name.rfind("passed_", 0) == 0 || name == "read_errors" ||
                        name == "mount_refused" || name == "events_dropped" ||
                        name == "precache_lost_bytes";
    if (!counts || figure.value == 0) continue;
    const bool size = strcmp(figure.metric->unit, "bytes") == 0;
    items += fmt::format("<li>{} {}</li>", size ? bytes(figure.value) : grouped(figure.value, 0),
                         escaped(figure.metric->help));
  }
  if (items.empty()) return "";
  return "<section class=\"card notices\" id=\"notices\"><h2>Worth knowing</h2><ul>" + items +
         "</ul></section>\n";
}

// The processes that the figures cover.
std::string covered(const RunReport& run) {
  if (run.processes <= 1) return "Of all processes of the job, from its start to its end.";
  return fmt::format(
      "Of {} programs that the job ran at once or one after the other, and of what they forked: "
      "times of programs that ran at once add up. Pictures and epochs are of the one that ran "
      "longest.",
      grouped(run.processes, 0));
}

std::string figures_html(const RunReport& run) {
  std::string rows;
  std::string zeros;
  for (const RunReport::Figure& figure : run.figures) {
    (figure.value == 0 ? zeros : rows) += fmt::format(
        "<tr><th class=\"wide\" scope=\"row\">{}</th><td class=\"num wide\" data-name=\"value\">"
        "<span>{} <span class=\"none\">{}</span></span></td><td class=\"wide\">{}</td></tr>\n",
        escaped(figure.metric->name), grouped(figure.value, 0), escaped(figure.metric->unit),
        escaped(figure.metric->help));
  }
  const char* const head =
      "<table class=\"stack\"><thead><tr><th>figure</th><th "
      "class=\"num\">value</th><th>meaning</th>"
      "</tr></thead><tbody>\n";
  const auto table = [head](const std::string& body) { return head + body + "</tbody></table>"; };
  std::string text =
      "<section class=\"card\" id=\"figures\"><h2>All figures</h2><p class=\"note\">" +
      covered(run) + "</p>";
  if (!rows.empty()) text += table(rows);
  if (!zeros.empty()) {
    text += "<details><summary>Those that are 0</summary>" + table(zeros) + "</details>";
  }
  return text + "</section>\n";
}

std::string overview(const RunReport& run) {
  const double time = last(run.of(HistoryField::time_ns));
  const double read = last(run.of(HistoryField::read_bytes));
  const double stall = run.figure("stall_ns");
  const double fetched = run.figure("precached_bytes");
  const Counted total = counted(run);
  std::vector<Tile> tiles;
  if (time > 0) tiles.push_back({"Run", seconds(time), "while Sluice looked on", ""});
  tiles.push_back({"Read by the job", bytes(read > 0 ? read : run.figure("streamed_bytes")),
                   total.samples ? grouped(total.all(), 0) + " samples" : "of followed files", ""});
  tiles.push_back({"In memory in time", percent(total.hit, total.judged()),
                   total.samples ? "of samples whose place was known" : "of what was read",
                   total.judged() <= 0                  ? ""
                   : total.hit >= 0.95 * total.judged() ? "good"
                   : total.hit < 0.5 * total.judged()   ? "bad"
                                                        : ""});
  tiles.push_back({"Stall", seconds(stall),
                   time > 0 ? "about " + percent(stall, time) + " of the run" : "estimated",
                   time > 0 && stall > time / 20 ? "bad" : ""});
  tiles.push_back({"Stall avoided", seconds(run.figure("stall_avoided_ns")), "estimated", "good"});
  tiles.push_back({"Read ahead", bytes(fetched),
                   percent(run.figure("precached_unused_bytes"), fetched) + " of it never used",
                   ""});
  return tiles_html(tiles);
}

}  // namespace

std::string run_page(const RunReport& run, const std::string& source) {
  std::string body = overview(run) + notices_html(run) + reader_chart(run) + epochs_html(run);
  body += substitutions_html(run);
  body += "<div class=\"pair\">" + queue_chart(run) + bandwidth_chart(run) + stall_chart(run) +
          budget_chart(run) + "</div>\n";
  return page("Sluice: a run", source, body + figures_html(run));
}

}  // namespace sluice::cli
