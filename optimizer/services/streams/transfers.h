// Carries out what the scheduler plans for followed files: reads that fill the page cache, and
// drops. Core thread only; nothing blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "optimizer/io/engine.h"
#include "optimizer/services/service.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Transfers : Service {
 public:
  // `no_uring`: reads with threads.
  Transfers(const Service& service, bool no_uring);

  // Starts reads that the scheduler has planned, as far as the engine has room; see planned().
  void start(uint64_t now_ns);
  std::vector<policy::PlannedRead>& planned() { return planned_; }
  void start_drops(uint64_t now_ns);
  // Passes the results of reads on.
  void finish();
  void finish_if_any() {
    if (engine_->in_flight() > 0) finish();
  }
  void cancel(uint64_t token) { engine_->cancel(token); }
  // Decides how the results of reads in flight are noticed.
  void relax();
  bool idle() const { return reads_.empty() && planned_.empty(); }
  const char* engine() const { return engine_->name(); }  // display

 private:
  struct Read {
    policy::FileId file{};
    policy::Range range;
  };

  const std::unique_ptr<Engine> engine_;
  std::map<uint64_t, Read> reads_;            // submitted to the engine, by token
  std::vector<policy::PlannedRead> planned_;  // waiting for room in the engine
  uint64_t reap_ns_ = 0;                      // results are collected at this time; 0: as they come
};

}  // namespace sluice::optimizer
