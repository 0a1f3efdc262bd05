// All decisions about large files: which stream or sample reads what next, within budget and each
// mount's depth, and what is dropped. Here the planners of its parts are put together, and ends of
// reads, drops, files and sessions are passed to each of them.
//
// Pure: time is an argument, the page cache's content comes through Residency, and what is to be
// done is returned as values. One thread. Ids are the caller's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/copies/stage_plan.h"
#include "policy/planner/accounts.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_drop.h"
#include "policy/planner/planned_file.h"
#include "policy/planner/record_store.h"
#include "policy/planner/retention.h"
#include "policy/planner/run_planner.h"
#include "policy/planner/sample_planner.h"
#include "policy/planner/store.h"
#include "policy/planner/stream_planner.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// A session's state at one moment, for its history.
struct SessionView {
  uint64_t passed = 0;        // bytes that readers have passed in streams
  uint64_t passed_ready = 0;  // of these, prefetched or cached before the reader came
  uint64_t passes = 0;        // how often reading started again at a file's beginning
  uint64_t ahead = 0;         // bytes in memory and not passed
  uint64_t outstanding = 0;   // bytes of the budget in use
  uint64_t budget = 0;        // bytes
  uint64_t in_flight = 0;     // requests
  uint64_t depth = 0;         // limit of in_flight
  double bandwidth = 0;       // bytes per second, 0: not known
};

class Scheduler {
 public:
  // `samples` (may be null) supplies what samples need next, `stage` (may be null) decides which
  // whole files are staged, and when; both outlive the scheduler.
  explicit Scheduler(Residency* residency, SampleBook* samples = nullptr,
                     StagePlan* stage = nullptr);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Accounts& accounts() { return accounts_; }
  const Accounts& accounts() const { return accounts_; }
  MountQueue& queue() { return queue_; }
  const MountQueue& queue() const { return queue_; }
  StreamPlanner& streams() { return streams_; }
  const StreamPlanner& streams() const { return streams_; }
  SamplePlanner& samples() { return sample_planner_; }
  Store& store() { return store_; }
  Retention& retention() { return retention_; }

  // `policy`: which records are retained; nullopt: the planner chooses.
  void add_session(SessionId session, const PlanOptions& options, bool prefetch, uint64_t memory,
                   std::optional<PolicyKind> policy = std::nullopt);
  void remove_session(SessionId session, uint64_t now_ns);
  // The session is about to end: data that was prefetched for it and not passed counts as unused.
  // Afterwards its counters are final.
  void settle_session(SessionId session, uint64_t now_ns);
  SessionView view(SessionId session, uint64_t now_ns) const;

  void add_file(FileId file, uint64_t size, uint64_t mount);
  void resize_file(FileId file, uint64_t size);
  void file_usable(FileId file, bool usable);  // may be prefetched; initially false
  void remove_file(FileId file);

  // Appends to `reads` and to fetches() what to start now. Each of `reads` must end in on_done().
  // True: there may be more, to be planned once these fetches have begun.
  bool plan(uint64_t now_ns, std::vector<PlannedRead>* reads);
  // The files that the same call wants staged or revalidated; the caller empties it. Each must end
  // in a call of the StagePlan.
  std::vector<PlannedFetch>& fetches() { return fetches_; }
  // A file was staged for the session; `packed`: from a pack.
  void on_staged(SessionId session, uint64_t bytes, bool packed);
  void on_done(uint64_t token, uint64_t bytes, int error, uint64_t now_ns);
  // What readers have passed and no longer need, if the file does not fit the budget; and what has
  // no reader left, if the budget is used up. Each should end in on_dropped().
  void drops(uint64_t now_ns, std::vector<PlannedDrop>* drops);
  // A drop was made; `left` bytes of the range are still cached, because a process maps them.
  void on_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns);
  // `lost` bytes that were prefetched into `file` are no longer in the page cache.
  void on_lost(FileId file, uint64_t lost);

 private:
  PlannedFile* find(FileId file);
  void release_ready(PlannedFile& file, SessionId session);
  // Where the kernel does not reveal residency, a read's duration does. True: the page cache has
  // answered it.
  bool note_instant(PlannedFile& file, const Request& request, Range got, bool instant);

  Residency& residency_;
  SampleBook* const samples_;
  std::vector<PlannedFetch> fetches_;
  uint64_t next_orphans_ns_ = 0;
  PlannedFiles files_;
  Accounts accounts_;
  MountQueue queue_;
  StreamPlanner streams_;
  Retention retention_;
  RunPlanner runs_;
  RecordStore records_;
  Store store_;
  SamplePlanner sample_planner_;
};

}  // namespace sluice::policy
