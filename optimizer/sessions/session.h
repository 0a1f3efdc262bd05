// One job: its shared memory, processes and files. Core thread only, except for the ring reader.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "optimizer/control/parse.h"
#include "optimizer/io/page_table.h"
#include "optimizer/sessions/history.h"
#include "optimizer/sessions/ring_reader.h"
#include "policy/importance/jobs.h"
#include "policy/streams/fault_wait.h"
#include "policy/streams/observer.h"
#include "policy/util/ids.h"
#include "protocol/ring.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

// The session's shared memory, sealed against resizing: a client can neither shrink nor grow it
// while it is mapped here.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();
  // Returns the descriptor to send to the client, or an invalid one and *reason.
  UniqueFd create(policy::SessionId session, uint64_t token, std::string* reason);
  protocol::Shared* get() const { return shared_; }

 private:
  protocol::Shared* shared_ = nullptr;
};

struct Mapping {
  uint32_t slot = 0;
  policy::FileId file{};
  uint64_t address = 0, offset = 0, length = 0;  // bytes
};

// A mapping that is observed by its page table.
struct ObservedMapping {
  uint32_t slot = 0;
  policy::FileId file{};
  uint32_t pid = 0;
  uint64_t address = 0;
  std::unique_ptr<policy::PageTable> table;
  policy::Observer observer;
};

struct Process {
  uint32_t pid = 0;  // 0: no process known in this slot
  uint32_t parent = 0;
  UniqueFd pidfd;
  bool unwatched = false;  // assumed alive, but has no pidfd
};

// The files that a session's processes have mapped.
struct Mappings {
  std::vector<Mapping> all;
  std::list<ObservedMapping> observed;
  struct Times {
    uint64_t read_ns = 0, next_ns = 0;  // when these were read, and when to read them again
    std::vector<policy::ThreadTime> threads;
  };
  std::map<uint32_t, Times> times;  // by pid: of processes whose mappings are observed
  uint64_t waited_ns = 0;           // estimated, in observed mappings
};

// What a session has requested of importance sampling.
struct Selection {
  bool used = false;  // it has requested the samples that an epoch is to fetch
  std::map<policy::DatasetId, policy::BenefitEstimate> benefits;  // by dataset it selects from
};

struct SessionCounts {
  uint64_t events_seen = 0, events_bad = 0, mounts_refused = 0;
  uint64_t start_files = 0;     // fetched ahead, that an earlier start opened
  uint64_t folders_listed = 0;  // ahead of the job
  uint64_t paths_refused = 0;   // requests that name paths of another root or mount namespace
  uint64_t fruitless = 0;       // unlocated samples read of late; a located one takes four off
  ClientMetrics freed{};        // sums over freed slots
};

struct Session {
  policy::SessionId id{};
  uint64_t token = 0;
  uint32_t peer_pid = 0;
  std::string command;  // display
  SessionOptions options;
  UniqueFd peer_pidfd;  // watched until the first slot is taken
  // No process left since then; 0: some are left; nullopt: no slot has been taken yet.
  std::optional<uint64_t> empty_since_ns;
  std::array<Process, protocol::kSlots> processes;
  std::set<policy::FileId> files;
  static constexpr size_t kMaxFiles = 64;
  Mappings mappings;
  Selection selection;
  SessionCounts counts;
  SharedMemory memory;
  SessionHistory history;  // in `memory`
  // Joined before `memory` is unmapped; null once the session is ending.
  std::unique_ptr<RingReader> reader;

  unsigned live() const;
  bool may_stage() const {
    return options.stage != SessionOptions::Stage::kNever && options.prefetch;
  }
  bool has_process(uint32_t pid) const;
  // Parent of the process; 0: unknown.
  uint32_t parent_of(uint32_t pid) const;
  // Sum over all processes, alive and ended.
  ClientMetrics client_metrics() const;
  // How long the job has waited for data so far.
  uint64_t waited_ns() const;
};

using SessionMap = std::map<policy::SessionId, std::unique_ptr<Session>>;  // by id

// "python3 train.py" of a process, shortened; empty if the process has ended.
std::string command_line(uint32_t pid);

}  // namespace sluice::optimizer
