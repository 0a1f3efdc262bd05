// Pages of records that were read and are not retained: when they are dropped from the page cache.
//
// A sample that was read is held for a while, since a batch is assembled after its last sample has
// ended, from views as well as from copies. Then it is spent: its pages are dropped, except those
// of a retained sample or of one still to come. Pages that a process maps are retried. Pure: time
// is an argument; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "policy/planner/planned_drop.h"
#include "policy/planner/planned_file.h"
#include "policy/planner/record_plan.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// By file: what was read for samples that no job has begun yet, except for records that were read
// with others before their turn. `visited`: how many samples were checked.
std::map<FileId, IntervalSet> wanted_by_samples(const SampleBook* samples, uint64_t* visited);

// The whole pages of a record, within the file.
Range pages_of(const Extent& extent, uint64_t file_size);

class RecordDrops {
 public:
  RecordDrops(SampleBook* samples, PlannedFiles* files, const RecordPlan* records)
      : samples_(samples), files_(*files), records_(*records) {}

  // They were read and are not retained. Of all held pages at most `most` bytes stay held.
  void hold(const std::vector<FilePages>& pages, uint64_t most);
  // It was read together with records that are not retained, and no sample needs it.
  void add_between(FileId file, Range range) { between_[file].add(range); }
  void drops(uint64_t now_ns, std::vector<PlannedDrop>* drops);
  // A drop was made; `left` bytes of the range are still cached, because a process maps them.
  void on_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns);
  void remove_file(FileId file);

 private:
  // Pages that a process still mapped when they were dropped.
  struct Stuck {
    FilePages pages;
    unsigned tries = 0;
    uint64_t next_ns = 0;
  };
  using Wanted = std::map<FileId, IntervalSet>;

  void drop_between(std::vector<PlannedDrop>* drops);
  void drop_unneeded(const PlannedDrop& drop, const Wanted& wanted, uint64_t now_ns,
                     std::vector<PlannedDrop>* drops);
  void drop(const PlannedDrop& drop, PlannedFile& file, std::vector<PlannedDrop>* drops);

  SampleBook* const samples_;
  PlannedFiles& files_;
  const RecordPlan& records_;
  std::deque<FilePages> held_;  // become spent later, oldest first
  uint64_t held_bytes_ = 0, dropping_bytes_ = 0;
  std::map<FileId, IntervalSet> spent_;    // by file
  uint64_t spent_bytes_ = 0;               // of these, about
  std::map<FileId, IntervalSet> between_;  // by file
  std::deque<Stuck> stuck_;                // ordered by next_ns
  // The last round of each kind, and how many samples it visited.
  struct Round {
    uint64_t began_ns = 0, visited = 0;
    bool due(uint64_t now_ns, uint64_t visit_ns) const;
  } last_spent_, last_stuck_;
};

}  // namespace sluice::policy
