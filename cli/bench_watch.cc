// measure_path(): measures storage that may hang.
#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "cli/bench_storage.h"
#include "cli/program.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::milliseconds kFindTime{1500};
constexpr std::chrono::milliseconds kMeasureTime{9000};  // from the start: then no request begins
constexpr std::chrono::seconds kPatience{10};            // likewise: then the storage hangs

// Shared with the thread that measures, which may never end.
struct Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  int error = 0;
  BenchFiles files;
  BenchResult result;
};

}  // namespace

int measure_path(const std::string& path, BenchFiles* files, BenchResult* result) {
  const BenchClock::time_point began = BenchClock::now();
  const auto outcome = std::make_shared<Outcome>();
  std::thread([outcome, path, began] {
    BenchFiles found;
    BenchResult measured;
    const int error = find_files(path, began + kFindTime, &found);
    if (error == 0) measured = measure(found, began + kMeasureTime);
    const std::lock_guard lock(outcome->mutex);
    outcome->error = error;
    outcome->files = std::move(found);
    outcome->result = std::move(measured);
    outcome->over = true;
    outcome->changed.notify_all();
  }).detach();
  std::unique_lock lock(outcome->mutex);
  const std::string name = one_line(path);
  if (!outcome->changed.wait_until(lock, began + kPatience, [&] { return outcome->over; })) {
    failed(kExitProblem, fmt::format("{}: no answer within {} seconds", name, kPatience.count()));
    fflush(stdout);
    _exit(kExitProblem);  // the other thread hangs in a read
  }
  if (outcome->error != 0) {
    return failed(kExitProblem, fmt::format("{}: {}", name, strerror(outcome->error)));
  }
  *files = std::move(outcome->files);
  *result = std::move(outcome->result);
  if (!result->problem.empty()) failed(kExitProblem, one_line(result->problem));
  if (result->latency_reads > 0 || result->small[0].requests > 0) return 0;
  const bool any = !files->large.empty() || !files->small.empty();
  return failed(kExitProblem,
                fmt::format("{}: {}", name,
                            any ? "all that was found is in memory: nothing was measured"
                                : "no file with anything in it was found"));
}

}  // namespace sluice::cli
