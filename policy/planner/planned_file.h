// What the planner knows about a large file. Plain data; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "policy/planner/page_ledger.h"
#include "policy/planner/residency.h"
#include "policy/planner/stream_plan.h"
#include "policy/planner/sweep.h"
#include "policy/streams/coverage.h"
#include "policy/streams/descents.h"
#include "policy/streams/strides.h"
#include "policy/streams/tracker.h"
#include "policy/util/ids.h"
#include "policy/weights/shares.h"

namespace sluice::policy {

// Reads in a row that were too fast for the storage: the file is cached, where the kernel does not
// say so.
inline constexpr uint32_t kInstantRun = 16;

// How far reading ahead has come in ranges that follow each other in the file.
struct Cursor {
  uint64_t frontier = 0;  // before this offset all is in memory or on its way
  uint64_t probed = 0;    // no page before this offset was cached at the last probe
};

// A reader that is read ahead of by itself (stride_planner.h).
struct StridedReader {
  Strides strides;
  Descents descents;
  Shares shares;        // of files whose tensors are known
  SessionId session{};  // of its last access
  Cursor cursor;        // in what is expected
  Cursor current;       // in the share that it reads now, if the next one is not known
  uint64_t current_begin = 0;
  uint64_t begun = 0;  // bytes of reads that were begun for it

  bool predicted() const { return shares.partial() || strides.predicted(); }
};

struct PlannedFile {
  struct Planned {
    explicit Planned(const PlanOptions& options) : plan(options) {}
    StreamPlan plan;
    uint64_t in_flight = 0;      // bytes
    uint64_t trusted_until = 0;  // if instant reads are the rule: assumed cached up to here
    uint64_t probed_until = 0;   // no page before this offset was cached at the last probe
  };
  // How far a session's readers have come since they were at the file's beginning.
  struct Lap {
    uint64_t bytes = 0;
    uint64_t passes = 0;  // completed
  };

  uint64_t size = 0, mount = 0;
  bool usable = false;  // may be prefetched
  PageLedger pages;
  Tracker tracker;
  Coverage coverage;                          // by exact accesses
  std::map<uint64_t, StridedReader> readers;  // by reader, of exact accesses; bounded
  TensorList tensors;                         // of a file of weights; empty: not known
  bool shared = false;                        // some reader reads parts of its tensors
  bool descended = false;                     // some reader reads it backwards, in part
  bool heads_wanted = false;                  // some reader touches its tensors before it reads one
  Cursor heads_cursor;                        // in first pages of tensors
  IntervalSet unreadable;                     // what reads for no stream failed to read
  Sweep sweep;
  uint64_t sweep_probed = 0;          // no page between its cursor and this was cached at a probe
  FileId sequel{};                    // is read after this one; FileId{}: none is known
  bool sequel_asked = false;          // half of it was read
  Cursor sequel_cursor;               // while this is a sequel
  uint64_t sequel_until_ns = 0;       // until then it is likely to be read soon
  std::map<uint32_t, Planned> plans;  // by stream
  std::map<SessionId, Lap> laps;      // by session
  std::set<SessionId> users;          // sessions
  std::set<SessionId> by_page;        // sessions: MADV_RANDOM
  uint32_t instant = 0;               // reads in a row too fast for the storage
  bool mapped = false;                // read through a mapping: dropped only once unmapped
  SessionId last_session{};           // of the latest event: drops are counted for it
};

using PlannedFiles = std::map<FileId, PlannedFile>;  // by the caller's id

}  // namespace sluice::policy
