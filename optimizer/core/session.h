// One job: its shared memory, its processes, its files. Core thread only, but for the reader.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "optimizer/control/parse.h"
#include "optimizer/core/history.h"
#include "optimizer/core/ring_reader.h"
#include "optimizer/io/page_table.h"
#include "policy/importance/jobs.h"
#include "policy/streams/observer.h"
#include "protocol/ring.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

// The session's memory, created sealed against resizing: a client can neither shrink it under us
// nor grow it.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();
  // Returns the descriptor to pass on, or an invalid one and *reason.
  UniqueFd create(uint32_t session, uint64_t token, std::string* reason);
  protocol::Shared* get() const { return shared_; }

 private:
  protocol::Shared* shared_ = nullptr;
};

struct Mapping {
  uint32_t slot = 0, file = 0;
  uint64_t address = 0, offset = 0, length = 0;  // bytes
};

// A mapping that is followed by its page table.
struct ObservedMapping {
  uint32_t slot = 0, file = 0, pid = 0;
  uint64_t address = 0;
  std::unique_ptr<PageTable> table;
  Observer observer;
};

struct Process {
  uint32_t pid = 0;  // 0: no process known in this slot
  uint32_t parent = 0;
  UniqueFd pidfd;
  bool unwatched = false;  // alive as far as is known, and without a pidfd
  ClientMetrics last{};
};

struct Session {
  uint32_t id = 0;
  uint64_t token = 0;
  uint32_t peer_pid = 0;
  std::string command;  // display
  SessionOptions options;
  uint64_t fruitless = 0;  // samples read in a row of which it was not learned where they are
  bool selects = false;    // it has asked which samples an epoch fetches
  std::map<uint32_t, BenefitEstimate> benefits;  // likewise, by dataset
  UniqueFd peer_pidfd;                           // watched until the first slot is taken
  bool had_slot = false;
  bool said_paths = false;      // that its paths are not used
  bool bye = false;             // the job said that it is over
  uint64_t empty_since_ns = 0;  // no process left since then; 0: some are
  std::array<Process, protocol::kSlots> processes;
  std::set<uint32_t> files;
  static constexpr size_t kMaxFiles = 64;
  std::vector<Mapping> mappings;
  std::list<ObservedMapping> observed;
  ClientMetrics freed_metrics{};  // sums of the slots that were freed
  // Faults of processes whose mappings are observed; see optimizer_observe.cc.
  struct Faults {
    uint64_t looked_ns, count;
  };
  std::map<uint32_t, Faults> faults;  // by pid
  uint64_t observed_wait_ns = 0;
  uint64_t events_seen = 0, events_bad = 0, mounts_refused = 0;
  SharedMemory memory;
  SessionHistory history;              // in `memory`
  std::unique_ptr<RingReader> reader;  // before `memory` goes, it is joined

  unsigned live() const;
  bool has_process(uint32_t pid) const;
  // Who started the process; 0: not known.
  uint32_t parent_of(uint32_t pid) const;
  // Sum over processes alive and gone.
  ClientMetrics client_metrics() const;
  // What its job has waited for data, so far.
  uint64_t waited_ns() const;
};

// "python3 train.py" of a process, shortened; empty if it is gone.
std::string command_line(uint32_t pid);

}  // namespace sluice::optimizer
