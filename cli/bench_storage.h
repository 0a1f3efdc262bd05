// What storage offers: its latency, and its bandwidth by the number of requests at a time. Reads
// only what is not cached, and drops it again.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::cli {

using BenchClock = std::chrono::steady_clock;

inline constexpr std::array<unsigned, 8> kBenchDepths = {1, 2, 4, 8, 16, 32, 64, 128};
inline constexpr uint64_t kBenchBlock = 1 << 20;  // bytes of one request to a large file

// The files that are read from: large ones in blocks, small ones whole.
struct BenchFiles {
  struct File {
    std::string path;
    uint64_t bytes = 0;
  };
  std::vector<File> large, small;
  bool complete = true;  // all that is there was found in time
};

// The files at and below `path`, as far as they are found before `until`. Returns 0, or an errno.
int find_files(const std::string& path, BenchClock::time_point until, BenchFiles* files);

// What was read in one phase.
struct BenchRate {
  uint64_t requests = 0, bytes = 0;
  double seconds = 0;
  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

struct BenchResult {
  uint64_t blocks = 0;         // of large files, not cached before
  bool cache_known = true;     // the kernel says what is cached
  double latency_ns = 0;       // of one read of a page, the median; 0: not measured
  uint64_t latency_reads = 0;  // of which it is the median
  BenchRate in_order;          // one reader, with the kernel's read-ahead
  std::array<BenchRate, kBenchDepths.size()> large{}, small{};  // by depth
  std::string problem;                                          // the first error; "": none
};

// Takes some seconds, and at most until `until` if the storage answers.
BenchResult measure(const BenchFiles& files, BenchClock::time_point until);

// The files below `path`, and what reading them takes, within ten seconds. Returns 0, or the exit
// status after one line with the reason; where the storage hangs the process ends with it.
int measure_path(const std::string& path, BenchFiles* files, BenchResult* result);

// The least depth that brings nearly the greatest rate; an index of kBenchDepths.
size_t best_depth(const std::array<BenchRate, kBenchDepths.size()>& rates);

}  // namespace sluice::cli
