// Which fetches read from the folder on a fast disk (SLUICE_CACHE_DIR) at this moment, so that one
// whose file system hangs is given up: its file can be had from its own storage. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "optimizer/io/clock.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class DiskReads {
 public:
  using Fetch = std::pair<policy::SampleFileId, uint64_t>;  // the file, and the fetch's token

 private:
  struct Read {
    Fetch fetch;
    uint64_t begun_ns;
    bool late = false;
  };

 public:
  // By the calling thread, for the fetch, until destruction.
  class Reading {
   public:
    // `reads` outlives this; null: it is not counted.
    Reading(DiskReads* reads, const Fetch& fetch) : reads_(reads) {
      if (reads_ == nullptr) return;
      const std::lock_guard lock(reads_->mutex_);
      own_ = reads_->reads_.insert(reads_->reads_.end(), {fetch, now_ns()});
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() {
      if (reads_ == nullptr) return;
      const std::lock_guard lock(reads_->mutex_);
      if (own_->late) --reads_->late_;
      reads_->reads_.erase(own_);
    }

   private:
    DiskReads* const reads_;
    std::list<Read>::iterator own_;
  };

  // What reads that began before `ns` are for, each of which is returned once.
  std::vector<Fetch> take_late(uint64_t ns) {
    std::vector<Fetch> fetches;
    const std::lock_guard lock(mutex_);
    for (Read& read : reads_) {
      if (read.begun_ns >= ns) break;
      if (read.late) continue;
      read.late = true;
      ++late_;
      fetches.push_back(read.fetch);
    }
    return fetches;
  }
  // Whether one that was late has not come to its end: the folder does not answer.
  bool hang() const { return late_.load(std::memory_order_relaxed) != 0; }

 private:
  std::mutex mutex_;
  std::list<Read> reads_;  // oldest first, about
  std::atomic<uint64_t> late_{0};
};

}  // namespace sluice::optimizer
