// What the decisions for all sessions rest on: what is known of files, samples and orders, and what
// is planned with it. Core thread only.
#pragma once

#include "policy/copies/stage_plan.h"
#include "policy/importance/book.h"
#include "policy/planner/scheduler.h"
#include "policy/samples/file_table.h"
#include "policy/samples/sample_book.h"

namespace sluice::optimizer {

struct Plans {
  // `residency` outlives this, and is not used before the first session.
  explicit Plans(policy::Residency* residency) : scheduler(residency, &samples, &stage) {}

  policy::FileTable sample_files;
  policy::SampleBook samples{&sample_files};
  policy::StagePlan stage{&sample_files};
  policy::ImportanceBook importance;
  policy::Scheduler scheduler;
  bool orders_changed = false;  // since uses were last predicted from them
};

}  // namespace sluice::optimizer
