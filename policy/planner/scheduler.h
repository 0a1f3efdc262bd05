// Everything that is decided about big files: which stream reads what next, within budget and
// each mount's depth, and what is dropped behind the readers.
//
// Pure: time comes as an argument, what the page cache holds through Residency, and what is to be
// done goes out as values. One thread. Ids are the caller's.
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

// What the page cache holds, and what will be there to read. The questions that planning asks of
// the world.
class Residency {
 public:
  Residency() = default;
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;
  virtual ~Residency() = default;
  // Bytes of `range` that are cached; 0 if that cannot be known.
  virtual uint64_t cached(uint32_t file, Range range) = 0;
  // False if it cannot be: the kernel tells only who owns a file or may write it.
  virtual bool known(uint32_t file) const = 0;
  // Each page of it is told, and nothing is read to find out.
  virtual bool exact(uint32_t file) const { return known(file); }
  // The file is being opened: it will be told of, unless that fails.
  virtual bool awaited(uint32_t /*file*/) const { return false; }
};

struct PlannedRead {
  uint64_t token = 0;
  uint32_t file = 0;
  Range range;
};

struct PlannedDrop {
  // kBehind: passed by streams, or nobody's. kSpent: of a record that was read and is not kept.
  enum Why : uint8_t { kBehind, kSpent };
  uint32_t file = 0;
  Range range;
  Why why = kBehind;
  unsigned tries = 0;  // kSpent: in vain, before this one
};

// What a session's history shows of a moment.
struct SessionView {
  uint64_t passed = 0;        // bytes that readers have passed in streams
  uint64_t passed_ready = 0;  // of these, read ahead or found cached before they came
  uint64_t passes = 0;        // how often reading began again at a file's start
  uint64_t ahead = 0;         // bytes in memory and not passed
  uint64_t outstanding = 0;   // bytes of the budget in use
  uint64_t budget = 0;        // bytes
  uint64_t in_flight = 0;     // requests
  uint64_t depth = 0;         // requests that may be
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
  // `samples`, which may be null, says what samples need next, and `stage`, which may be too, who
  // of those that are whole files comes into memory when; both outlive the scheduler.
  explicit Scheduler(Residency* residency, SampleBook* samples = nullptr,
                     StagePlan* stage = nullptr)
      : residency_(residency), samples_(samples), stage_(stage) {}

  // `policy`: which records are retained; nullopt: the planner chooses.
  void add_session(uint32_t session, const PlanOptions& options, bool prefetch, uint64_t memory,
                   std::optional<PolicyKind> policy = std::nullopt);
  void remove_session(uint32_t session, uint64_t now_ns);
  // The session is about to end: what it had read ahead and nobody passed is unused. After this
  // its counters are final.
  void settle_session(uint32_t session, uint64_t now_ns);
  // Counters of a session; nullptr if it is not known.
  SessionMetrics* metrics(uint32_t session);
  // What the session's job was saved; nullptr likewise.
  Savings* savings(uint32_t session);

  // Mounts are told apart by `mount` (a device number). Unknown ones begin with these values.
  void add_mount(uint64_t mount, uint32_t block, unsigned max_depth);
  // What was found out about a mount that has not been read from yet.
  void set_mount(uint64_t mount, uint32_t block, unsigned max_depth);
  void add_file(uint32_t file, uint64_t size, uint64_t mount);
  void resize_file(uint32_t file, uint64_t size);
  void file_usable(uint32_t file, bool usable);  // may be read ahead; at first it may not
  void remove_file(uint32_t file);
  void use_file(uint32_t file, uint32_t session);  // the session has it open; until it leaves

  void on_access(uint32_t file, const Access& access);
  void on_random(uint32_t file);
  // The session reads the file through a mapping of which the kernel reads nothing ahead, or not.
  void on_advised(uint32_t file, uint32_t session, bool by_page);
  void on_zapped(uint32_t file, Range range);
  void forget_process(uint32_t pid);
  // A sample that consists of `parts` is about to be read, and has been. Not `own_order`: it comes
  // in the file's order, and what it would take is that of a stream.
  void on_sample_begin(uint32_t session, std::span<const Extent> parts, bool own_order = true);
  void on_sample_end(uint32_t session, std::span<const Extent> parts);
  // After it, where the order is the sample's own: what stays of it when memory is bounded.
  void on_record_read(uint32_t session, uint32_t dataset, uint64_t index,
                      std::span<const Extent> parts, uint64_t now_ns);
  // The session reads the file's records in an order of their own: which pages it touches says
  // nothing about those behind them.
  bool is_shuffled(uint32_t file, uint32_t session) const;
  // Of records that the session is the first to read.
  void set_policy(uint32_t session, PolicyKind policy) {
    const auto at = sessions_.find(session);
    if (at != sessions_.end()) at->second.policy = policy;
  }
  // Orders are not what they were.
  void foretell_records();
  // What was learned of the dataset was given up (SampleBook::release).
  void forget_record_dataset(uint32_t dataset);
  // What it is worth to keep the sample's records, for policies that go by that.
  void set_record_importance(uint32_t dataset, uint32_t sample, float importance) {
    records_.set_importance(dataset, sample, importance);
  }
  // After the samples' book was told that the session left.
  void forget_record_session(uint32_t session);
  // What the session has read of mapped records may be dropped: it is to be taken out of its page
  // tables.
  bool bounds_records(uint32_t session) const;
  const RecordPlan& records() const { return records_; }
  // Of what jobs ask for, the most that there is memory for, bytes.
  void set_record_most(uint64_t bytes);

  // Fills `reads` with what to start now. Every one must end in on_done().
  void plan(uint64_t now_ns, std::vector<PlannedRead>* reads);
  // What the same call wants to have staged, or looked at; the caller empties it. Every one must
  // end in the stage's plan.
  std::vector<PlannedFetch>& fetches() { return fetches_; }
  // A file was staged for the session, out of a pack perhaps.
  void on_staged(uint32_t session, uint64_t bytes, bool packed) {
    count(session, SessionMetric::precached_bytes, bytes);
    count(session, SessionMetric::packed_files, packed ? 1 : 0);
    count(session, SessionMetric::packed_bytes, packed ? bytes : 0);
  }
  void on_done(uint64_t token, uint64_t bytes, int error, uint64_t now_ns);
  // What passed readers no longer need, if the file does not fit the budget; and what no reader is
  // left for, if the budget is used up. Every one should end in on_dropped().
  void drops(uint64_t now_ns, std::vector<PlannedDrop>* drops);
  // A drop was made; `left` bytes of the range are still cached, because somebody maps them.
  void on_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns);
  // `lost` bytes of what was read ahead into `file` were not in the page cache.
  void on_lost(uint32_t file, uint64_t lost);

  // How long it takes until a quarter of what is in flight has arrived, on the mount where that is
  // shortest; 0 if some mount has too little in flight to wait for.
  uint64_t refill_ns(uint64_t now_ns) const;

  void set_budget(uint64_t bytes) { budget_ = bytes; }
  uint64_t budget() const { return budget_; }
  uint64_t outstanding() const { return outstanding_; }  // read ahead, not passed, and in flight
  // Mounts of which some read has been under way for longer than `limit_ns`.
  std::vector<uint64_t> hung(uint64_t now_ns, uint64_t limit_ns) const;
  std::vector<uint64_t> tokens_of(uint32_t file) const;
  // A file of `size` bytes does not fit what the session may use.
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
  // Of records that wait for others to be read with.
  uint64_t waiting_bytes(uint64_t mount) const;

 private:
  struct Mount {
    Mount(uint32_t block, unsigned max_depth) : model(block, max_depth) {}
    StorageModel model;
    unsigned in_flight = 0;  // requests
    uint64_t in_flight_bytes = 0;
    unsigned taken = 0;  // requests that plan_samples() is about to start
    Gatherer waiting;
    uint64_t gathered = 0;  // bytes in flight that waited
  };
  struct Session {
    PlanOptions options;
    bool prefetch = true;
    uint64_t memory = 0;  // bytes, 0: the common budget alone
    std::optional<PolicyKind> policy;
    uint64_t outstanding = 0;
    uint64_t taken = 0;  // bytes that plan_samples() is about to start
    SessionMetrics metrics{};
    Savings savings;
    uint64_t passed = 0, passed_ready = 0, passes = 0;  // as SessionView says
    std::set<uint32_t> record_files;                    // of the datasets that it uses
    uint64_t record_bytes = 0;                          // of these files
    uint64_t seen_change = 0;
  };
  // How far a session's readers have got with a file since they were at its start.
  struct Lap {
    uint64_t bytes = 0;
    uint64_t passes = 0;  // completed
  };
  struct Planned {
    explicit Planned(const PlanOptions& options) : plan(options) {}
    StreamPlan plan;
    uint64_t in_flight = 0;      // bytes
    uint64_t trusted_until = 0;  // where instant reads are the rule: taken for cached up to here
    uint64_t probed_until = 0;   // no page before here was cached when we looked
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
    IntervalSet called;                     // of both, what a sample to come needs
    IntervalSet beside;                     // read with others before its turn; may be cached still
    IntervalSet found;                      // was cached without us, not passed
    IntervalSet reread;                     // samples were read here; may be cached still
    IntervalSet behind;                     // read ahead and passed, may be dropped
    IntervalSet zapped;                     // no longer mapped by its reader
    IntervalSet between;                    // read with records that are not kept
    IntervalSet spent;                      // records that were read and are not kept
    IntervalSet dropping;                   // of them, being dropped
    std::set<uint32_t> users;               // sessions
    std::set<uint32_t> by_page;             // sessions: MADV_RANDOM
    uint32_t instant = 0;  // reads in a row that cannot have come from storage; see kInstantRun
    bool mapped = false;   // read through a mapping: wait for zaps
    uint32_t last_session = 0;  // of the latest event: whose counters get drops
  };
  // A dataset of records.
  struct RecordSet {
    std::set<uint32_t> files;
    uint64_t window = 0;    // bytes ahead, the most of late
    uint64_t hold = 0;      // bytes behind, the same
    uint64_t limit = 0;     // bytes; 0: none
    bool gathers = false;   // its records lie near enough to wait for each other
    uint32_t gathered = 0;  // reads of late for which they did, less those for which they did not
    uint64_t seen_change = 0;
  };
  // Spent, and mapped by somebody when it was dropped.
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
    uint64_t gathered = 0;  // bytes of it that waited
  };
  struct Candidate {
    uint32_t file = 0, stream = 0;
    double urgency = 0;  // seconds until the reader is at the frontier
  };

  void count(uint32_t session, SessionMetric metric, uint64_t by);
  // What `bytes` of it would have taken the session without us: as a part of a run, or for
  // themselves.
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
  // An extent that a sample needs, to be read now; `turn` counts them.
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
  static bool is_believed(const File& file, Range range);
  void disbelieve(File& file, Range range);
  uint64_t longest_run(uint64_t mount) const;  // bytes
  // What lies between records of so many bytes, and may be read with them.
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
  void foretell_records(uint32_t dataset);
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
  uint64_t taken_bytes_ = 0;  // Session::taken of all
  uint64_t next_orphans_ns_ = 0;
  bool starved_ = false;  // something could not be read because the budget is used up
  RecordPlan records_;
  std::map<uint32_t, RecordSet> record_sets_;  // by dataset; not empty
  uint64_t record_changes_ = 1;                // of sessions, files and sizes
  uint64_t record_most_ = UINT64_MAX;
  uint64_t link_window_ = 0;    // bytes that any order may be ahead
  uint64_t seen_orders_ = 0;    // changes of them
  std::deque<FilePages> held_;  // to be spent, oldest first
  uint64_t held_bytes_ = 0, dropping_bytes_ = 0;
  std::deque<Stuck> stuck_;  // by next_ns
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
