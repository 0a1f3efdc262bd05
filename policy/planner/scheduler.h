// All decisions about large files: which stream reads what next, within budget and each mount's
// depth, and what is dropped behind the readers.
//
// Pure: time is an argument, the page cache's content comes through Residency, and what is to be
// done is returned as values. One thread. Ids are the caller's.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/planner/gatherer.h"
#include "policy/planner/record_plan.h"
#include "policy/planner/savings.h"
#include "policy/planner/stage_plan.h"
#include "policy/planner/storage_model.h"
#include "policy/planner/stream_plan.h"
#include "policy/samples/sample_book.h"
#include "policy/streams/tracker.h"
#include "policy/util/interval_set.h"
#include "protocol/metrics.h"

namespace sluice::optimizer {

using protocol::SessionMetric;
using SessionMetrics = std::array<uint64_t, protocol::kSessionMetricCount>;

// What the page cache holds, and which files will become readable: what planning asks of its
// surroundings.
class Residency {
 public:
  Residency() = default;
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;
  virtual ~Residency() = default;
  // Bytes of `range` that are cached; 0 if that is not known.
  virtual uint64_t cached(uint32_t file, Range range) = 0;
  // False if residency cannot be known: the kernel reveals it only to a file's owner or to a
  // process that may write the file.
  virtual bool known(uint32_t file) const = 0;
  // Residency is known for each page, and without reading any.
  virtual bool exact(uint32_t file) const { return known(file); }
  // The file is being opened, and becomes readable unless that fails.
  virtual bool awaited(uint32_t /*file*/) const { return false; }
};

struct PlannedRead {
  uint64_t token = 0;
  uint32_t file = 0;
  Range range;
};

struct PlannedDrop {
  // kBehind: passed by streams, or without a reader. kSpent: of a record that was read and is not
  // retained.
  enum Why : uint8_t { kBehind, kSpent };
  uint32_t file = 0;
  Range range;
  Why why = kBehind;
  unsigned tries = 0;  // kSpent: failed attempts before this one
};

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

// A stream as status shows it.
struct StreamView {
  uint32_t file = 0, session = 0, readers = 0;
  uint64_t position = 0, opened = 0, frontier = 0, target = 0, in_flight = 0;
  double rate = 0;
  bool confirmed = false;
};

class Scheduler {
 public:
  // `samples` (may be null) supplies what samples need next, `stage` (may be null) decides which
  // whole files are staged, and when; both outlive the scheduler.
  explicit Scheduler(Residency* residency, SampleBook* samples = nullptr,
                     StagePlan* stage = nullptr)
      : residency_(residency), samples_(samples), stage_(stage) {}

  // `policy`: which records are retained; nullopt: the planner chooses.
  void add_session(uint32_t session, const PlanOptions& options, bool prefetch, uint64_t memory,
                   std::optional<PolicyKind> policy = std::nullopt);
  void remove_session(uint32_t session, uint64_t now_ns);
  // The session is about to end: data that was prefetched for it and not passed counts as unused.
  // Afterwards its counters are final.
  void settle_session(uint32_t session, uint64_t now_ns);
  // Counters of a session; nullptr if it does not exist.
  SessionMetrics* metrics(uint32_t session);
  // Waiting that the session's job was saved; nullptr if it does not exist.
  Savings* savings(uint32_t session);

  // `mount` (a device number) identifies a mount. An unknown mount starts with these values.
  void add_mount(uint64_t mount, uint32_t block, unsigned max_depth);
  // What was learned about a mount that has not been read from yet.
  void set_mount(uint64_t mount, uint32_t block, unsigned max_depth);
  void add_file(uint32_t file, uint64_t size, uint64_t mount);
  void resize_file(uint32_t file, uint64_t size);
  void file_usable(uint32_t file, bool usable);  // may be prefetched; initially false
  void remove_file(uint32_t file);
  void use_file(uint32_t file, uint32_t session);  // the session has it open, until it leaves

  void on_access(uint32_t file, const Access& access);
  void on_random(uint32_t file);
  // `by_page`: the session reads the file through a mapping without kernel read-ahead.
  void on_advised(uint32_t file, uint32_t session, bool by_page);
  void on_zapped(uint32_t file, Range range);
  void forget_process(uint32_t pid);
  // A sample that consists of `parts` is about to be read. `own_order` false: it is read in the
  // file's order, and its storage time is that of a stream.
  void on_sample_begin(uint32_t session, std::span<const Extent> parts, bool own_order = true);
  void on_sample_end(uint32_t session, std::span<const Extent> parts);
  // After on_sample_end(), where samples have an order of their own: decides what is retained of
  // the sample when memory is bounded.
  void on_record_read(uint32_t session, uint32_t dataset, uint64_t index,
                      std::span<const Extent> parts, uint64_t now_ns);
  // The session reads the file's records in an order of their own: the pages that it touches say
  // nothing about the pages that follow them.
  bool is_shuffled(uint32_t file, uint32_t session) const;
  // The policy for records that this session is the first to read.
  void set_policy(uint32_t session, PolicyKind policy) {
    const auto at = sessions_.find(session);
    if (at != sessions_.end()) at->second.policy = policy;
  }
  // The orders have changed.
  void predict_records();
  // The book has discarded what it learned of the dataset (SampleBook::release).
  void forget_record_dataset(uint32_t dataset);
  // The importance of the sample's records, for policies that use it.
  void set_record_importance(uint32_t dataset, uint32_t sample, float importance) {
    records_.set_importance(dataset, sample, importance);
  }
  // REQUIRES: the sample book already knows that the session left.
  void forget_record_session(uint32_t session);
  // Mapped records that the session has read may be dropped: they must be removed from its page
  // tables.
  bool bounds_records(uint32_t session) const;
  const RecordPlan& records() const { return records_; }
  // Upper limit, by available memory, of what jobs ask for, bytes.
  void set_record_most(uint64_t bytes);

  // Fills `reads` with what to start now. Each must end in on_done().
  void plan(uint64_t now_ns, std::vector<PlannedRead>* reads);
  // The files that the same call wants staged or revalidated; the caller empties it. Each must end
  // in a call of the StagePlan.
  std::vector<PlannedFetch>& fetches() { return fetches_; }
  // A file was staged for the session; `packed`: from a pack.
  void on_staged(uint32_t session, uint64_t bytes, bool packed) {
    count(session, SessionMetric::precached_bytes, bytes);
    count(session, SessionMetric::packed_files, packed ? 1 : 0);
    count(session, SessionMetric::packed_bytes, packed ? bytes : 0);
  }
  void on_done(uint64_t token, uint64_t bytes, int error, uint64_t now_ns);
  // What readers have passed and no longer need, if the file does not fit the budget; and what has
  // no reader left, if the budget is used up. Each should end in on_dropped().
  void drops(uint64_t now_ns, std::vector<PlannedDrop>* drops);
  // A drop was made; `left` bytes of the range are still cached, because a process maps them.
  void on_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns);
  // `lost` bytes that were prefetched into `file` are no longer in the page cache.
  void on_lost(uint32_t file, uint64_t lost);

  // The time until a quarter of the bytes in flight has arrived, on the mount where that is
  // shortest; 0 if some mount has too little in flight to wait for.
  uint64_t refill_ns(uint64_t now_ns) const;

  void set_budget(uint64_t bytes) { budget_ = bytes; }
  uint64_t budget() const { return budget_; }
  uint64_t outstanding() const { return outstanding_; }  // prefetched and not passed, and in flight
  // Mounts with a read that has been in flight for longer than `limit_ns`.
  std::vector<uint64_t> hung(uint64_t now_ns, uint64_t limit_ns) const;
  std::vector<uint64_t> tokens_of(uint32_t file) const;
  // A file of `size` bytes does not fit into the session's budget.
  bool drops_behind(uint64_t size, uint32_t session) const {
    return size > session_budget(session);
  }
  // Bytes per cell that suit budget and storage.
  uint64_t distance(uint32_t session) const;

  std::vector<StreamView> streams() const;
  SessionView view(uint32_t session, uint64_t now_ns) const;
  uint64_t passes(uint32_t session) const;  // SessionView's
  const StorageModel* model(uint64_t mount) const;
  unsigned mount_in_flight(uint64_t mount) const;
  // Bytes of records that wait to be read together with others.
  uint64_t waiting_bytes(uint64_t mount) const;

 private:
  struct Mount {
    Mount(uint32_t block, unsigned max_depth) : model(block, max_depth) {}
    StorageModel model;
    unsigned in_flight = 0;  // requests
    uint64_t in_flight_bytes = 0;
    unsigned taken = 0;  // requests that plan_samples() is about to start
    Gatherer waiting;
    uint64_t gathered = 0;  // bytes in flight whose records waited in `waiting`
  };
  struct Session {
    PlanOptions options;
    bool prefetch = true;
    uint64_t memory = 0;  // bytes; 0: limited only by the common budget
    std::optional<PolicyKind> policy;
    uint64_t outstanding = 0;
    uint64_t taken = 0;  // bytes that plan_samples() is about to start
    SessionMetrics metrics{};
    Savings savings;
    uint64_t passed = 0, passed_ready = 0, passes = 0;  // as in SessionView
    std::set<uint32_t> record_files;                    // of the datasets that the session uses
    uint64_t record_bytes = 0;                          // of these files
    uint64_t seen_change = 0;
  };
  // How far a session's readers have come in a file since they were at its beginning.
  struct Lap {
    uint64_t bytes = 0;
    uint64_t passes = 0;  // completed
  };
  struct Planned {
    explicit Planned(const PlanOptions& options) : plan(options) {}
    StreamPlan plan;
    uint64_t in_flight = 0;      // bytes
    uint64_t trusted_until = 0;  // if instant reads are the rule: assumed cached up to here
    uint64_t probed_until = 0;   // no page before this offset was cached at the last probe
  };
  struct File {
    uint64_t size = 0, mount = 0;
    bool usable = false;
    uint64_t in_flight = 0;  // requests
    Tracker tracker;
    std::map<uint32_t, Planned> plans;      // by stream
    std::map<uint32_t, IntervalSet> ready;  // by session: read ahead, not passed
    std::map<uint32_t, Lap> laps;           // by session
    IntervalSet flying;                     // being read
    IntervalSet waiting;                    // of the mount's Gatherer
    IntervalSet called;                     // of `flying` and `waiting`, what a coming sample needs
    IntervalSet beside;                     // read with others before its turn; may still be cached
    IntervalSet found;                      // was cached without Sluice; not passed
    IntervalSet reread;                     // samples were read here; may still be cached
    IntervalSet behind;                     // prefetched and passed, may be dropped
    IntervalSet zapped;                     // no longer mapped by its reader
    IntervalSet between;                    // read together with records that are not retained
    IntervalSet spent;                      // records that were read and are not retained
    IntervalSet dropping;                   // of `spent`, being dropped
    std::set<uint32_t> users;               // sessions
    std::set<uint32_t> by_page;             // sessions: MADV_RANDOM
    uint32_t instant = 0;       // reads in a row too fast for the storage; see kInstantRun
    bool mapped = false;        // read through a mapping: dropped only after zaps
    uint32_t last_session = 0;  // of the latest event: drops are counted for it
  };
  // A dataset of records.
  struct RecordSet {
    std::set<uint32_t> files;
    uint64_t window = 0;    // bytes ahead, the recent maximum
    uint64_t hold = 0;      // bytes behind, likewise
    uint64_t limit = 0;     // bytes; 0: none
    bool gathers = false;   // its records are near enough to each other to wait
    uint32_t gathered = 0;  // recent reads for which they were, less those for which not
    uint64_t seen_change = 0;
  };
  // Spent pages that a process still mapped when they were dropped.
  struct Stuck {
    FilePages pages;
    unsigned tries = 0;
    uint64_t next_ns = 0;
  };
  struct Request {
    uint32_t file = 0, stream = 0, session = 0;
    uint64_t mount = 0;
    Range range;
    StorageModel::Sample sample;
    uint64_t gathered = 0;  // bytes of it whose records waited
  };
  struct Candidate {
    uint32_t file = 0, stream = 0;
    double urgency = 0;  // seconds until the reader reaches the frontier
  };

  void count(uint32_t session, SessionMetric metric, uint64_t by);
  // The time that `bytes` of the file would have taken the session without Sluice: as part of a
  // run, or as single records.
  Demand run_demand(const File& file, uint32_t session, uint64_t bytes) const;
  Demand record_demand(const File& file, uint32_t session, uint64_t bytes) const;
  void served(uint32_t session, Demand demand);
  void missed(uint32_t session, Demand demand);
  void pass(File& file, Range range, const Stream& stream, bool expected, uint64_t now_ns);
  void note_pass(File& file, uint32_t session, Range range, uint64_t in_memory);
  void note_begin(File& file, const Access& access);
  void leave(uint32_t id, File& file, uint32_t stream);
  PlanInput input(const File& file, const Stream& stream) const;
  uint64_t session_budget(uint32_t session) const;
  bool room(uint32_t session, uint64_t bytes) const;
  std::vector<Candidate> candidates(uint64_t mount);
  std::optional<Range> next_range(uint32_t id, File& file, const Stream& stream, Planned& planned);
  // An extent that a sample needs, to be read now; `turn` is its place in the order of taking.
  struct Taken {
    uint32_t file = 0, session = 0;
    size_t turn = 0;
    Range range;
  };
  void start_taken(std::vector<Taken> taken, uint64_t now_ns, std::vector<PlannedRead>* reads);
  static Range pages_of(const Extent& extent, uint64_t file_size);
  void plan_samples(uint64_t now_ns, std::vector<PlannedRead>* reads);
  uint64_t record_bytes(uint32_t session, uint32_t file_id, const File& file);
  bool stays(uint32_t file_id, const File& file, uint32_t session);
  bool is_missing(uint32_t file_id, const File& file, Range range);
  static bool is_assumed_cached(const File& file, Range range);
  void assume_evicted(File& file, Range range);
  uint64_t longest_run(uint64_t mount) const;  // bytes
  // The largest gap between records of `bytes` bytes that may be read with them.
  uint64_t gather_gap(uint64_t mount, uint64_t bytes) const;
  bool gathers(uint32_t file_id, const File& file, uint32_t session, Range own);
  Range run_around(const WantedExtent& wanted, const File& file, Range own, uint64_t now_ns);
  void wait_for_others(const WantedExtent& wanted, File& file, Range range);
  void uncharge(const WaitingRead& read);
  void give_up_waiting(const std::vector<WaitingRead>& gone);
  void start_waiting(uint64_t now_ns, std::vector<PlannedRead>* reads);
  void start_group(uint64_t mount, const std::vector<WaitingRead>& group, uint64_t now_ns,
                   std::vector<PlannedRead>* reads);
  void forget_waiting(uint32_t file);
  void purge_waiting();
  bool is_bounded(uint32_t file);
  bool still_waits(const WantedExtent& wanted) const;
  void got_beside(uint32_t file_id, File& file, uint32_t session, Range got,
                  const std::vector<Range>& called);
  bool take_beside(File& file, uint32_t session, Range range);
  SampleBook::Verdict judge(uint32_t session, const Extent& extent, uint64_t now_ns);
  SampleBook::Verdict judge_file(uint32_t session, uint32_t file, uint64_t now_ns);
  void start(Request request, uint64_t now_ns, std::vector<PlannedRead>* reads);
  bool needed(const File& file, Range range, uint64_t idle_ns, uint64_t now_ns) const;
  void drop_behind(uint32_t id, File& file, uint64_t now_ns, std::vector<PlannedDrop>* drops);
  std::map<uint32_t, IntervalSet> wanted_by_samples(uint64_t* visited) const;
  void drop_orphans(uint32_t id, File& file, const IntervalSet& wanted, uint64_t now_ns,
                    std::vector<PlannedDrop>* drops);
  uint64_t record_limit(uint32_t dataset);
  uint64_t find_record_limit(uint32_t dataset) const;
  uint64_t record_window(uint32_t dataset, uint64_t spread, uint64_t limit, uint64_t now_ns);
  std::optional<PolicyKind> record_policy(uint32_t dataset) const;
  void choose_record_policy(uint32_t dataset, std::vector<FilePages>* freed);
  void give_up_records(uint32_t dataset);
  void predict_records(uint32_t dataset);
  void forget_spent(uint32_t file);
  void forget_record_file(uint32_t file);
  void drop_records(uint64_t now_ns, std::vector<PlannedDrop>* drops);
  void drop_between(uint32_t id, File& file, std::vector<PlannedDrop>* drops);
  void drop_unneeded(const PlannedDrop& drop, const IntervalSet& wanted, uint64_t now_ns,
                     std::vector<PlannedDrop>* drops);
  void on_spent_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns);
  void release_ready(File& file, uint32_t session, Range range, SessionMetric why);

  Residency* const residency_;
  SampleBook* const samples_;
  StagePlan* const stage_;
  std::vector<PlannedFetch> fetches_;
  uint64_t budget_ = 256 << 20;
  uint64_t outstanding_ = 0;
  uint64_t taken_bytes_ = 0;  // sum of Session::taken
  uint64_t next_orphans_ns_ = 0;
  bool starved_ = false;  // a read was held back because the budget is used up
  RecordPlan records_;
  std::map<uint32_t, RecordSet> record_sets_;  // by dataset; each has files
  uint64_t record_changes_ = 1;                // counts changes of sessions, files and sizes
  uint64_t record_most_ = UINT64_MAX;
  uint64_t link_window_ = 0;    // bytes that any order may be ahead
  uint64_t seen_orders_ = 0;    // SampleBook::changes() at the last look
  std::deque<FilePages> held_;  // become spent later, oldest first
  uint64_t held_bytes_ = 0, dropping_bytes_ = 0;
  std::deque<Stuck> stuck_;  // ordered by next_ns
  bool any_spent_ = false;   // some file has records to drop
  uint64_t next_spent_ns_ = 0;
  uint64_t next_token_ = 1;
  std::map<uint64_t, Mount> mounts_;
  std::map<uint32_t, Session> sessions_;
  std::map<uint32_t, File> files_;
  std::unordered_map<uint64_t, Request> requests_;
  std::unordered_map<uint64_t, std::pair<uint32_t, uint32_t>>
      last_stream_;  // reader -> file, stream
};

}  // namespace sluice::optimizer
