// The scheduler in a world of its own: page cache, storage and time are simulated, so that what
// it decides for a sequence of events is the same on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <vector>

#include "policy/planner/scheduler.h"

namespace sluice::test {

using policy::Access;
using policy::FileId;
using policy::IntervalSet;
using policy::PlannedDrop;
using policy::PlannedRead;
using policy::Range;
using policy::Scheduler;
using policy::SessionId;

class Simulator : public policy::Residency {
 public:
  struct Storage {
    double latency_s = 0.0005;
    double bandwidth = 400e6;  // bytes per second, one link
  };

  Simulator() : scheduler(this) { scheduler.accounts().set_budget(1ULL << 30); }

  void add_mount(uint64_t mount, uint32_t block, unsigned depth, Storage storage);
  void add_file(FileId file, uint64_t size, uint64_t mount);

  // Lets time pass: reads end, others begin.
  void advance_to(uint64_t time_ns);
  void access(FileId file, const Access& access);  // at access.time_ns
  // A demand read of a job, outside of the scheduler. Returns when its bytes are there.
  uint64_t demand(FileId file, Range range, uint64_t time_ns);

  uint64_t cached(FileId file, Range range) override {
    return reports_cache ? cache[file].covered(range) + coming_[file].covered(range) : 0;
  }
  bool known(FileId) const override { return reports_cache; }
  uint64_t now() const { return now_; }

  Scheduler scheduler;
  std::map<FileId, IntervalSet> cache;
  std::function<void(uint64_t now, const PlannedRead&)> on_read;
  std::function<void(uint64_t now, const PlannedDrop&)> on_drop;
  // Error for a read, 0: none.
  std::function<int(const PlannedRead&)> fail;
  uint64_t bytes_read = 0, bytes_dropped = 0, reads = 0;
  uint64_t most_outstanding = 0;
  bool reports_cache = true;  // what is cached can be asked

 private:
  struct End {
    uint64_t time, token;
    bool operator>(const End& other) const {
      return time != other.time ? time > other.time : token > other.token;
    }
  };
  struct Mount {
    Storage storage;
    uint64_t free_ns = 0;
  };

  void pump();
  uint64_t answer(uint64_t mount, uint64_t bytes, uint64_t time_ns);

  uint64_t now_ = 0;
  std::map<uint64_t, Mount> mounts_;
  std::map<FileId, uint64_t> mount_of_;
  std::map<uint64_t, PlannedRead> flying_;
  std::map<FileId, IntervalSet> coming_;  // being read by the optimizer
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace sluice::test
