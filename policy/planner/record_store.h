// Records of followed files, as a store of samples' bytes: which are read now, and what the page
// cache holds of them. What stays there once read is Retention's decision. Pure: time is an
// argument; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_file.h"
#include "policy/planner/run_planner.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// What a store has of a part that is about to be read: files, or bytes.
struct Presence {
  uint64_t wanted = 0, here = 0, coming = 0;
  Demand missing;
};

class RecordStore {
 public:
  // `samples` may be null: then there are no groups.
  RecordStore(Residency* residency, Accounts* accounts, MountQueue* queue, PlannedFiles* files,
              SampleBook* samples, RunPlanner* runs)
      : residency_(*residency),
        accounts_(*accounts),
        queue_(*queue),
        files_(*files),
        samples_(samples),
        runs_(*runs) {}

  // Is the record to be read now?
  FetchVerdict judge(SessionId session, const Extent& part, uint64_t now_ns);
  // After kTake: it waits for its neighbours, or is read by the next start(), together with as many
  // of its group (SampleBook::groups()) as there is room for.
  void take(const WantedExtent& wanted, uint64_t now_ns);
  // Appends the reads of all that was taken.
  void start(uint64_t now_ns, std::vector<PlannedRead>* reads);

  // nullopt: not known. `own_order` as in SamplePlanner.
  std::optional<Presence> presence(SessionId session, const Extent& part, bool own_order);
  // Bytes read for the first time are counted here.
  Hit on_read(SessionId session, const Extent& part);
  // Of many records read in parallel, ns; 0: not known.
  double parallel_ns(const Extent& part) const;

 private:
  // A range to read, in the order of taking.
  struct Taken {
    FileId file{};
    SessionId session{};
    size_t turn = 0;
    Range range;
  };

  // False: the record is in no group, or there is no room for that.
  bool take_group(const WantedExtent& wanted);
  std::vector<Range> own_pages(SessionId session, const Extent& part) const;
  std::vector<Range> reads_of(const PlannedFile& file, std::span<const Extent> group) const;
  // Whether the range is in memory, being read, or waits; then it is counted.
  bool is_there(FileId file_id, PlannedFile& file, SessionId session, Range range);
  static std::vector<Taken> merged(std::vector<Taken> taken);
  Demand demand(const PlannedFile& file, SessionId session, uint64_t bytes) const;

  Residency& residency_;
  Accounts& accounts_;
  MountQueue& queue_;
  PlannedFiles& files_;
  SampleBook* const samples_;
  RunPlanner& runs_;
  std::vector<Taken> taken_;
};

}  // namespace sluice::policy
