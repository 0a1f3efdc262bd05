// The reads in flight of each mount: how many it takes at a time, and what it is learned to cost.
// Pure: time is an argument; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/gatherer.h"
#include "policy/planner/planned_file.h"
#include "policy/storage/storage_model.h"
#include "policy/util/ids.h"

namespace sluice::policy {

struct PlannedRead {
  uint64_t token = 0;
  FileId file{};
  Range range;
};

// Reads for no stream: of a file that is read whole, for readers that are followed one by one, and
// of a file that follows another one.
inline constexpr uint32_t kSweepStream = UINT32_MAX;
inline constexpr uint32_t kStrideStream = UINT32_MAX - 1;
inline constexpr uint32_t kSequelStream = UINT32_MAX - 2;

// A read to be started, or in flight.
struct Request {
  FileId file{};
  SessionId session{};
  uint32_t stream = 0;  // 0: for samples; kSequelStream and above: as above
  Range range;
  uint64_t gathered = 0;  // bytes of it whose records waited for each other
  // Set by MountQueue::start():
  uint64_t mount = 0;
  StorageModel::Sample sample{};
};

struct Mount {
  Mount(uint32_t block, unsigned max_depth) : model(block, max_depth) {}
  unsigned idle(uint64_t now_ns) const {  // requests that it takes beyond those in flight
    const unsigned depth = model.depth(now_ns);
    return depth > in_flight ? depth - in_flight : 0;
  }
  // The kernel splits a longer read into several requests. Bytes.
  uint64_t longest_run() const { return model.block(); }
  // The largest gap between records of `bytes` bytes that may be read with them: half of what would
  // pay, and not many times what is wanted, since no sample needs these bytes and other readers
  // share what is left of the link.
  uint64_t largest_gap(uint64_t bytes) const {
    constexpr uint64_t kMostGap = 8;  // times what is wanted
    return std::min(model.cost().worth() / 2, kMostGap * bytes);
  }
  StorageModel model;
  unsigned in_flight = 0;  // requests
  uint64_t in_flight_bytes = 0;
  unsigned reserved = 0;  // requests that are being planned
  Gatherer waiting;
  uint64_t gathered = 0;  // bytes in flight whose records waited in `waiting`
};

class MountQueue {
 public:
  MountQueue(Accounts* accounts, PlannedFiles* files) : accounts_(*accounts), files_(*files) {}

  // `mount` (a device number) identifies a mount. An unknown mount starts with these values.
  void add(uint64_t mount, uint32_t block, unsigned max_depth);
  // What was learned about a mount that has not been read from yet.
  void set(uint64_t mount, uint32_t block, unsigned max_depth);

  Mount& of(const PlannedFile& file) { return mounts_.at(file.mount); }
  const Mount& of(const PlannedFile& file) const { return mounts_.at(file.mount); }
  std::map<uint64_t, Mount>& mounts() { return mounts_; }
  const std::map<uint64_t, Mount>& mounts() const { return mounts_; }
  const StorageModel* model(uint64_t mount) const;  // nullptr: no such mount
  unsigned in_flight(uint64_t mount) const;         // requests
  // Bytes of records that wait to be read together with others.
  uint64_t waiting_bytes(uint64_t mount) const;

  // Charges the session and appends the read. REQUIRES: file and session exist.
  void start(Request request, uint64_t now_ns, std::vector<PlannedRead>* reads);
  // The read is no longer in flight, nor charged. nullopt: no such token. Its session and file may
  // have been removed.
  std::optional<Request> end(uint64_t token);

  // The time until a quarter of the bytes in flight has arrived, on the mount where that is
  // shortest; 0 if some mount has too little in flight to wait for.
  uint64_t refill_ns(uint64_t now_ns) const;
  // Mounts with a read that has been in flight for longer than `limit_ns`.
  std::vector<uint64_t> hung(uint64_t now_ns, uint64_t limit_ns) const;
  std::vector<uint64_t> tokens_of(FileId file) const;
  uint64_t requests_of(SessionId session) const;  // in flight

 private:
  Accounts& accounts_;
  PlannedFiles& files_;
  uint64_t next_token_ = 1;
  std::map<uint64_t, Mount> mounts_;
  std::unordered_map<uint64_t, Request> requests_;  // by token
};

}  // namespace sluice::policy
