// Sequential runs in large files: how far ahead of each reader to read, and what may be dropped
// behind the readers. Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/head_planner.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_drop.h"
#include "policy/planner/planned_file.h"
#include "policy/planner/sequel_planner.h"
#include "policy/planner/stride_planner.h"
#include "policy/util/ids.h"

namespace sluice::policy {

inline constexpr uint64_t kStreamIdleNs = 30'000'000'000;  // an idle stream needs nothing any more

// A stream as status shows it.
struct StreamView {
  FileId file{};
  SessionId session{};
  uint32_t readers = 0;
  uint64_t position = 0, opened = 0, frontier = 0, target = 0, in_flight = 0;
  double rate = 0;
  bool confirmed = false;
};

class StreamPlanner {
 public:
  StreamPlanner(Residency* residency, Accounts* accounts, MountQueue* queue, PlannedFiles* files)
      : residency_(*residency),
        accounts_(*accounts),
        queue_(*queue),
        files_(*files),
        heads_(residency, accounts, queue, files),
        strides_(residency, accounts, queue, files),
        sequels_(residency, accounts, queue, files) {}

  void on_access(FileId file, const Access& access);
  void on_random(FileId file);
  // `by_page`: the session reads the file through a mapping without kernel read-ahead.
  void on_advised(FileId file, SessionId session, bool by_page);
  SequelPlanner& sequels() { return sequels_; }
  // What the header of a file of weights says.
  void on_tensors(FileId file, TensorList tensors);
  void on_unmapped(FileId file, Range range);  // by a reader
  void remove_process(uint32_t pid);
  void remove_file(FileId file);
  // The session is about to end. An open cell sends no further event: at its pace the reader has
  // come a certain way in it.
  void settle(PlannedFile& file, SessionId session, uint64_t now_ns);

  void plan(uint64_t now_ns, std::vector<PlannedRead>* reads);
  // Ends of the stream's reads: of any; of one that was answered by the page cache; of one that
  // brought in `got`.
  void on_ended(PlannedFile& file, const Request& request);
  void on_filled(PlannedFile& file, const Request& request, uint64_t bytes);
  void on_arrived(PlannedFile& file, const Request& request, Range got);

  // Some active stream still wants the range, or has just passed it.
  static bool needed(const PlannedFile& file, Range range, uint64_t idle_ns, uint64_t now_ns);
  // Of files that do not fit the budget: what every reader has passed.
  void drop_behind(uint64_t now_ns, std::vector<PlannedDrop>* drops);
  // What is ready, and neither wanted by a stream nor by the samples in `wanted` (by file).
  void drop_orphans(const std::map<FileId, IntervalSet>& wanted, uint64_t now_ns,
                    std::vector<PlannedDrop>* drops);
  void on_dropped(PlannedFile& file, const PlannedDrop& drop, uint64_t left);

  uint64_t passes(SessionId session) const;  // SessionView's
  std::vector<StreamView> views() const;
  // Where streams of the file and this reader are, and how far ahead of them it is read.
  std::vector<ObservedStream> observed(FileId file, uint64_t reader) const;

 private:
  using Planned = PlannedFile::Planned;
  struct Candidate {
    FileId file{};
    uint32_t stream = 0;
    double urgency = 0;  // seconds until the reader reaches the frontier
  };

  Demand demand(const PlannedFile& file, SessionId session, uint64_t bytes) const;
  PlanInput input(const PlannedFile& file, const Stream& stream) const;
  void pass(PlannedFile& file, Range range, SessionId session, bool expected, uint64_t now_ns);
  void note_pass(PlannedFile& file, SessionId session, Range range, uint64_t in_memory);
  void note_begin(PlannedFile& file, const Access& access);
  void note_step(PlannedFile& file, const Access& access, const Tracker::Outcome& outcome,
                 const std::vector<Range>& parts);
  std::vector<Range> passed(PlannedFile& file, const Access& access,
                            const Tracker::Outcome& outcome);
  void move_reader(uint64_t reader, FileId file, uint32_t stream);
  void leave(FileId file_id, PlannedFile& file, uint32_t stream);
  std::vector<Candidate> candidates(uint64_t mount);
  std::optional<Range> next_range(FileId id, PlannedFile& file, const Stream& stream,
                                  Planned& planned);
  void sweep(uint64_t mount_id, uint64_t now_ns, std::vector<PlannedRead>* reads);
  void drop_behind(FileId id, PlannedFile& file, uint64_t now_ns, std::vector<PlannedDrop>* drops);

  Residency& residency_;
  Accounts& accounts_;
  MountQueue& queue_;
  PlannedFiles& files_;
  HeadPlanner heads_;
  StridePlanner strides_;
  SequelPlanner sequels_;
  // By reader: the file and stream in which it was last.
  std::unordered_map<uint64_t, std::pair<FileId, uint32_t>> last_stream_;
};

}  // namespace sluice::policy
