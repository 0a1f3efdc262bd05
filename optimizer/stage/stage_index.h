// The writer of the shared memory of protocol/stage.h, which jobs map. Core thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/stage.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class StageIndex {
 public:
  StageIndex() = default;
  StageIndex(const StageIndex&) = delete;
  StageIndex& operator=(const StageIndex&) = delete;
  ~StageIndex();

  // `folder` holds the copies; `watch_fd` is the inotify that reports changes of originals, or -1.
  // False: *reason is one line.
  bool create(const std::string& folder, int watch_fd, std::string* reason);
  bool exists() const { return stage_ != nullptr; }
  // To be sent to jobs: sealed, so that only this process can write to it.
  int fd() const { return fd_.get(); }

  // Adds a record for the file of this path, in state kFetching; kNone if there is no room for it.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t add(const std::string& path);
  // The copy can be opened under copy.name from now on. Fills in key and state.
  void publish(uint32_t record, protocol::StageCopy copy);
  void validated(uint32_t record, uint64_t at_ns);
  // Reads the record as jobs see it.
  bool read(uint32_t record, protocol::StageCopy* copy, protocol::StageState* state) const;
  // The record of a path's key, or kNone.
  uint32_t find(const protocol::StageKey& key) const;
  // Jobs no longer find the record.
  void remove(uint32_t record);

  // Mark the time in which inotify's queue is read and copies of changed files are dropped. Nest.
  void draining_begins();
  void draining_ends();
  void beat(uint64_t now_ns);
  void close();  // jobs are to stop using it
  uint64_t size() const { return used_; }

 private:
  void wake(uint32_t record);
  void note_device(uint64_t device);

  UniqueFd fd_;
  protocol::Stage* stage_ = nullptr;
  uint64_t used_ = 0;
  unsigned draining_ = 0;
  uint32_t next_ = 0;  // records from this one on were never used
  std::vector<uint32_t> free_;
  std::vector<uint64_t> bucket_;          // by record: group * kStageGroupSize + place
  std::vector<protocol::StageKey> keys_;  // by record
};

}  // namespace sluice::optimizer
