// Samples whose order is known: which of their records and files are read now, and what was in
// memory when their turn came. Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/copies/stage_plan.h"
#include "policy/planner/accounts.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/record_store.h"
#include "policy/planner/retention.h"
#include "policy/planner/run_planner.h"
#include "policy/planner/store.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class SamplePlanner {
 public:
  // `samples` and `stage` may be null.
  SamplePlanner(SampleBook* samples, StagePlan* stage, Store* store, RecordStore* records,
                Accounts* accounts, MountQueue* queue, Retention* retention, RunPlanner* runs)
      : samples_(samples),
        stage_(stage),
        store_(*store),
        records_(*records),
        accounts_(*accounts),
        queue_(*queue),
        retention_(*retention),
        runs_(*runs) {}

  // Appends the records to read now, and the files to stage or revalidate. True: as
  // Scheduler::plan().
  bool plan(uint64_t now_ns, std::vector<PlannedRead>* reads, std::vector<PlannedFetch>* fetches);

  // A sample that consists of `parts` is about to be read. `own_order` false: it is read in the
  // file's order, and its storage time is that of a stream.
  void on_sample_begin(SessionId session, std::span<const Extent> parts, bool own_order = true);
  void on_sample_end(SessionId session, std::span<const Extent> parts);

 private:
  SampleBook* const samples_;
  StagePlan* const stage_;
  Store& store_;
  RecordStore& records_;
  Accounts& accounts_;
  MountQueue& queue_;
  Retention& retention_;
  RunPlanner& runs_;
};

}  // namespace sluice::policy
