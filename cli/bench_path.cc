// `sluice bench`: measures storage, and prints what Sluice could gain there.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/bench_storage.h"
#include "cli/commands.h"
#include "cli/program.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

std::string rate_text(const BenchRate& rate) {
  return format_bytes(rate.bytes_per_second()) + "/s";
}

void add_depths(const std::array<BenchRate, kBenchDepths.size()>& rates,
                std::vector<std::vector<std::string>>* rows) {
  for (size_t at = 0; at < rates.size(); ++at) {
    if (rates[at].requests == 0) continue;
    rows->push_back({fmt::format("  {} at a time", kBenchDepths[at]), rate_text(rates[at]),
                     fmt::format("{:.0f} a second",
                                 static_cast<double>(rates[at].requests) / rates[at].seconds)});
  }
}

void add_gain(const char* what, const BenchRate& plain, const BenchRate& best, unsigned depth,
              std::vector<std::vector<std::string>>* rows) {
  if (plain.requests == 0 || best.requests == 0) return;
  const double gain = best.bytes_per_second() / plain.bytes_per_second();
  rows->push_back({fmt::format("  {}", what), rate_text(plain), "to", rate_text(best),
                   gain < 1.1 ? std::string("no gain")
                              : fmt::format("{:.1f} times, {} at a time", gain, depth)});
}

void print(const std::string& path, const BenchFiles& files, const BenchResult& result) {
  fmt::print("{}: {}{} files of 16 MiB and more, {} smaller ones\n", one_line(path),
             files.complete ? "" : "at least ", files.large.size(), files.small.size());
  if (!result.cache_known) {
    fmt::print("The kernel does not say to this user what is cached: rates may be too high.\n");
  }
  std::vector<std::vector<std::string>> rows;
  if (result.latency_reads > 0) {
    rows.push_back({"one page", format_time(result.latency_ns),
                    fmt::format("the median of {}", result.latency_reads)});
  }
  if (result.in_order.requests > 0) {
    rows.push_back(
        {"one file in order", rate_text(result.in_order), "with the kernel's read-ahead"});
  }
  const size_t large = best_depth(result.large), small = best_depth(result.small);
  if (result.large[large].requests > 0) rows.push_back({"pieces of 1 MiB"});
  add_depths(result.large, &rows);
  if (result.small[small].requests > 0) rows.push_back({"whole small files"});
  add_depths(result.small, &rows);
  fmt::print("\n{}", columns(rows, "lrl"));
  rows.clear();
  add_gain("a large file in order", result.in_order, result.large[large], kBenchDepths[large],
           &rows);
  add_gain("pieces of a large file", result.large[0], result.large[large], kBenchDepths[large],
           &rows);
  add_gain("small files", result.small[0], result.small[small], kBenchDepths[small], &rows);
  if (rows.empty()) return;
  fmt::print("\nWhat Sluice can gain here at most, for a job that waits for data alone:\n{}",
             columns(rows, "lrlrl"));
}

void print_json(const std::string& path, const BenchFiles& files, const BenchResult& result) {
  const auto depths = [](const auto& rates) {
    nlohmann::json list = nlohmann::json::array();
    for (size_t at = 0; at < rates.size(); ++at) {
      if (rates[at].requests == 0) continue;
      list.push_back({{"depth", kBenchDepths[at]},
                      {"requests", rates[at].requests},
                      {"bytes_per_second", rates[at].bytes_per_second()}});
    }
    return list;
  };
  nlohmann::json out{{"path", path},
                     {"large_files", files.large.size()},
                     {"small_files", files.small.size()},
                     {"complete", files.complete},
                     {"cache_known", result.cache_known},
                     {"latency_ns", result.latency_ns},
                     {"in_order_bytes_per_second", result.in_order.bytes_per_second()},
                     {"blocks", depths(result.large)},
                     {"whole_files", depths(result.small)}};
  fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int bench(const BenchOptions& options) {
  BenchFiles files;
  BenchResult result;
  if (const int status = measure_path(options.path, &files, &result)) return status;
  options.json ? print_json(options.path, files, result) : print(options.path, files, result);
  return fflush(stdout) == 0 && result.problem.empty() ? 0 : kExitProblem;
}

}  // namespace sluice::cli
