// Samples whose order is known: which of their records and files are read now, and what was in
// memory when their turn came. Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_file.h"
#include "policy/planner/retention.h"
#include "policy/planner/run_planner.h"
#include "policy/planner/stage_plan.h"
#include "policy/samples/sample_book.h"

namespace sluice::optimizer {

class SamplePlanner {
 public:
  // `samples` and `stage` may be null.
  SamplePlanner(Residency* residency, SampleBook* samples, StagePlan* stage, Accounts* accounts,
                MountQueue* queue, PlannedFiles* files, Retention* retention, RunPlanner* runs)
      : residency_(*residency),
        samples_(samples),
        stage_(stage),
        accounts_(*accounts),
        queue_(*queue),
        files_(*files),
        retention_(*retention),
        runs_(*runs) {}

  // Appends the records to read now, and the files to stage or revalidate.
  void plan(uint64_t now_ns, std::vector<PlannedRead>* reads, std::vector<PlannedFetch>* fetches);

  // A sample that consists of `parts` is about to be read. `own_order` false: it is read in the
  // file's order, and its storage time is that of a stream.
  void on_sample_begin(uint32_t session, std::span<const Extent> parts, bool own_order = true);
  void on_sample_end(uint32_t session, std::span<const Extent> parts);

 private:
  // An extent that a sample needs, to be read now; `turn` is its place in the order of taking.
  struct Taken {
    uint32_t file = 0, session = 0;
    size_t turn = 0;
    Range range;
  };
  struct Outcome {  // of a sample that is about to be read: files, or bytes
    uint64_t wanted = 0, here = 0, coming = 0;
    Demand missing;
    void miss(Demand demand);
  };

  SampleBook::Verdict judge(uint32_t session, const Extent& extent, uint64_t now_ns);
  SampleBook::Verdict judge_file(uint32_t session, uint32_t file, uint64_t now_ns);
  // Whether the range is in memory, being read, or waits; then it is counted.
  bool is_there(uint32_t file_id, PlannedFile& file, uint32_t session, Range range);
  void take(const WantedExtent& wanted, uint64_t now_ns, std::vector<Taken>* taken);
  static std::vector<Taken> merged(std::vector<Taken> taken);
  void start(const std::vector<Taken>& taken, uint64_t now_ns, std::vector<PlannedRead>* reads);
  bool note_file(uint32_t file, Outcome* outcome);
  bool note_record(uint32_t session, const Extent& part, bool own_order, Outcome* outcome);
  Demand demand(const PlannedFile& file, uint32_t session, uint64_t bytes) const;

  Residency& residency_;
  SampleBook* const samples_;
  StagePlan* const stage_;
  Accounts& accounts_;
  MountQueue& queue_;
  PlannedFiles& files_;
  Retention& retention_;
  RunPlanner& runs_;
};

}  // namespace sluice::optimizer
