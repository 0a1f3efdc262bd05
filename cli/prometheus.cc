// `sluice status --prometheus`: the metrics in Prometheus' text exposition format, version 0.0.4.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/optimizer_client.h"
#include "cli/program.h"
#include "cli/run_settings.h"
#include "cli/text.h"
#include "protocol/metrics.h"
#include "protocol/version.h"

namespace sluice::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestLabel = 80;  // bytes of a command
constexpr size_t kMostJobs = 100;     // that have series of their own
constexpr uint64_t kNsPerSecond = 1'000'000'000;

// The values of the status that belong to no job, which protocol/metrics.h does not list.
struct Gauge {
  const char* place;  // names of nested fields, separated by dots
  const char* name;
  const char* help;
};
constexpr Gauge kGauges[] = {
    {"uptime_s", "optimizer_uptime_seconds", "time since the optimizer started"},
    {"budget.bytes", "budget_bytes", "memory that staged and prefetched data may take"},
    {"budget.outstanding_bytes", "budget_used_bytes", "of these, used by prefetched data"},
    {"stage.budget_bytes", "stage_budget_bytes", "memory that copies of sample files may take"},
    {"stage.used_bytes", "stage_used_bytes", "of these, used"},
    {"stage.copies", "stage_copies", "sample files that are in memory as copies"},
};

// An optimizer's status, and its jobs with their labels.
struct Source {
  struct Job {
    std::string labels;
    Json metrics;
  };
  std::string label;  // optimizer="PID"
  Json status;
  std::vector<Job> jobs;
  size_t all_jobs = 0;
};

// The field of an object, or null: a status may be of any shape.
const Json& field(const Json& object, std::string_view name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found != object.end() ? *found : kNull;
}

std::string number_text(const Json& value) { return value.is_number() ? value.dump() : ""; }

// At most kLongestLabel bytes, of whole characters; escaped.
std::string label_text(std::string text) {
  text = one_line(text);
  if (text.size() > kLongestLabel) {
    size_t end = kLongestLabel;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.resize(end);
  }
  return replaced(replaced(text, '\\', "\\\\"), '"', "\\\"");
}

Source source_of(Json status, size_t jobs_left) {
  Source source;
  source.label = fmt::format("optimizer=\"{}\"", number_text(field(status, "pid")));
  const Json& jobs = field(status, "jobs");
  source.all_jobs = jobs.is_array() ? jobs.size() : 0;
  for (size_t index = 0; index < std::min(source.all_jobs, jobs_left); ++index) {
    const Json& command = field(jobs[index], "command");
    source.jobs.push_back(
        {fmt::format("{},session=\"{}\",pid=\"{}\",command=\"{}\"", source.label,
                     number_text(field(jobs[index], "session")),
                     number_text(field(jobs[index], "pid")),
                     command.is_string() ? label_text(command.get<std::string>()) : ""),
         field(jobs[index], "metrics")});
  }
  source.status = std::move(status);
  return source;
}

bool is_gauge(const protocol::MetricInfo& metric) {
  const std::string_view unit = metric.unit;
  return unit == "permille" || std::string_view(metric.name) == "stall_avoided_ns";
}

// By the conventions: seconds and ratios instead of ns and permille, "_total" for what only grows.
std::string exposed_name(const protocol::MetricInfo& metric) {
  std::string name = metric.name;
  const auto exchange = [&name](std::string_view tail, std::string_view by) {
    if (name.ends_with(tail)) name.replace(name.size() - tail.size(), tail.size(), by);
  };
  exchange("_ns", "_seconds");
  exchange("_permille", "_ratio");
  return is_gauge(metric) ? name : name + "_total";
}

std::string exposed_value(const protocol::MetricInfo& metric, uint64_t value) {
  const std::string_view unit = metric.unit;
  if (unit == "ns") return fmt::format("{}.{:09}", value / kNsPerSecond, value % kNsPerSecond);
  if (unit == "permille") return fmt::format("{}.{:03}", value / 1000, value % 1000);
  return fmt::format("{}", value);
}

// Samples are written below the head of their family, which is left out if there are none.
class Page {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    head_ = fmt::format("# HELP sluice_{} {}\n# TYPE sluice_{} {}\n", name,
                        replaced(one_line(help), '\\', "\\\\"), name, type);
  }
  void sample(std::string_view labels, std::string_view value) {
    text_ += head_;
    head_.clear();
    text_ += labels.empty() ? fmt::format("sluice_{} {}\n", name_, value)
                            : fmt::format("sluice_{}{{{}}} {}\n", name_, labels, value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_, name_, head_;
};

void add_metrics(const std::vector<Source>& sources, std::span<const protocol::MetricInfo> metrics,
                 Page* page) {
  for (const protocol::MetricInfo& metric : metrics) {
    if (std::string_view(metric.unit) == "id") continue;  // no quantity
    page->family(exposed_name(metric), is_gauge(metric) ? "gauge" : "counter", metric.help);
    for (const Source& source : sources) {
      for (const Source::Job& job : source.jobs) {
        const Json& value = field(job.metrics, metric.name);
        if (!value.is_number_unsigned()) continue;
        page->sample(job.labels, exposed_value(metric, value.get<uint64_t>()));
      }
    }
  }
}

void add_gauges(const std::vector<Source>& sources, Page* page) {
  for (const Gauge& gauge : kGauges) {
    page->family(gauge.name, "gauge", gauge.help);
    for (const Source& source : sources) {
      const Json* value = &source.status;
      for (const std::string& name : split(gauge.place, '.')) value = &field(*value, name);
      if (value->is_number()) page->sample(source.label, value->dump());
    }
  }
  page->family("jobs", "gauge", "jobs that the optimizer has sessions of");
  for (const Source& source : sources) {
    page->sample(source.label, fmt::format("{}", source.all_jobs));
  }
  page->family("jobs_omitted", "gauge", "of these, without series here: there are too many");
  for (const Source& source : sources) {
    page->sample(source.label, fmt::format("{}", source.all_jobs - source.jobs.size()));
  }
}

std::string metrics_page(const std::vector<Source>& sources, size_t silent) {
  Page page;
  page.family("build_info", "gauge", "the version of the program that wrote this");
  page.sample(fmt::format("version=\"{}\",protocol=\"{}\"", kProgramVersion, protocol::kVersion),
              "1");
  page.family("optimizers", "gauge", "optimizers that answered");
  page.sample("", fmt::format("{}", sources.size()));
  page.family("optimizers_silent", "gauge", "optimizers that did not answer");
  page.sample("", fmt::format("{}", silent));
  add_gauges(sources, &page);
  add_metrics(sources, protocol::kClientMetrics, &page);
  add_metrics(sources, protocol::kSessionMetrics, &page);
  return page.text();
}

}  // namespace

int print_metrics(const StatusOptions& options) {
  std::vector<std::string> sockets = {chosen_socket(options.socket)};
  std::vector<std::string> problems;
  if (sockets[0].empty()) {
    sockets.clear();
    const Reply found = sockets_of_user(&sockets);
    if (found.answer == Answer::kProblem) problems.push_back(problem_text(found));
  }
  std::vector<Source> sources;
  size_t jobs_left = kMostJobs;
  for (const std::string& socket : sockets) {
    const Reply reply = ask_status(socket);
    if (reply.answer == Answer::kNone) continue;
    Json status = Json::parse(reply.text, nullptr, false);
    if (reply.answer == Answer::kGood && status.is_object()) {
      sources.push_back(source_of(std::move(status), jobs_left));
      jobs_left -= sources.back().jobs.size();
    } else {
      problems.push_back(reply.answer == Answer::kGood ? "the optimizer's status is no JSON"
                                                       : problem_text(reply));
    }
  }
  const std::string page = metrics_page(sources, problems.size());
  if (options.out.empty()) {
    fmt::print("{}", page);
    if (fflush(stdout) != 0) return kExitProblem;
  } else if (const std::string problem = replace_file(options.out, page); !problem.empty()) {
    return failed(kExitProblem, one_line(options.out) + ": " + problem);
  }
  for (const std::string& problem : problems) failed(kExitProblem, problem);
  return problems.empty() ? 0 : kExitProblem;
}

}  // namespace sluice::cli
