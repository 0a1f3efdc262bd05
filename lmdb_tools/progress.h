// The progress of a long command: a bar on a terminal, elsewhere a line for each tenth, but no more
// than one a second. On stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::lmdb {

class Progress {
 public:
  // `total` is in the unit of update()'s `done`; `done` and `bytes` are where a resumed job begins.
  Progress(std::string what, uint64_t total, uint64_t done, uint64_t bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // moves past the bar's line

  void update(uint64_t done, uint64_t records, uint64_t bytes);

 private:
  using Clock = std::chrono::steady_clock;

  void draw(uint64_t done, uint64_t records, uint64_t bytes, bool last);

  const std::string what_;
  const uint64_t total_;
  const uint64_t first_, first_bytes_;  // done before this run
  const bool terminal_;
  const Clock::time_point begin_;
  Clock::time_point drawn_;
  uint64_t tenth_;     // the last tenth for which a line was printed
  bool open_ = false;  // the terminal's current line shows a bar
};

// "512.0 MiB".
std::string human_bytes(uint64_t bytes);

}  // namespace sluice::lmdb
