// The writing side of protocol/stage.h: the memory that jobs map. Core thread only.
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

  // `folder`, where copies are; `watch_fd`, the inotify that reports changes of originals, -1 if
  // there is none. False: *reason is one line.
  bool create(const std::string& folder, int watch_fd, std::string* reason);
  bool exists() const { return stage_ != nullptr; }
  // To be passed on: sealed, and mapped by nobody for writing but by us.
  int fd() const { return fd_.get(); }

  // A record for the file of this path, in state kFetching; kNone if its buckets are full.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t add(const std::string& path);
  // The copy can be opened under copy.name from now on. key and state are filled in.
  void publish(uint32_t record, protocol::StageCopy copy);
  void validated(uint32_t record, uint64_t at_ns);
  // What jobs see of it.
  bool look(uint32_t record, protocol::StageCopy* copy, protocol::StageState* state) const;
  // The record of a path's key, or kNone.
  uint32_t find(const protocol::StageKey& key) const;
  // Nobody finds it any more.
  void remove(uint32_t record);

  // Around reading what inotify has queued and dropping the copies of what changed. Nests.
  void draining_begins();
  void draining_ends();
  void beat(uint64_t now_ns);
  void close();  // nobody is to use it any more
  uint64_t size() const { return used_; }

 private:
  void wake(uint32_t record);
  void note_device(uint64_t device);

  UniqueFd fd_;
  protocol::Stage* stage_ = nullptr;
  uint64_t used_ = 0;
  unsigned draining_ = 0;
  uint32_t next_ = 0;  // records from here on were never used
  std::vector<uint32_t> free_;
  std::vector<uint64_t> bucket_;          // by record: group * kStageGroupSize + place
  std::vector<protocol::StageKey> keys_;  // by record
};

}  // namespace sluice::optimizer
