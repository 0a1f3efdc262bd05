// The first page of every tensor of a file of weights, for readers that begin with those alone:
// transformers touches each tensor once before it reads any, one round trip to storage after the
// other. A page a tensor is all that a reader costs that touches a few of them and reads no other.
// Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/gaps.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_file.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class HeadPlanner {
 public:
  HeadPlanner(Residency* residency, Accounts* accounts, MountQueue* queue, PlannedFiles* files)
      : accounts_(*accounts), queue_(*queue), files_(*files), gaps_(residency, accounts, queue) {}

  void plan(uint64_t mount, uint64_t now_ns, std::vector<PlannedRead>* reads);

 private:
  bool touches_heads(const PlannedFile& file, const StridedReader& reader) const;
  void plan_file(FileId id, PlannedFile& file, SessionId session, uint64_t now_ns,
                 std::vector<PlannedRead>* reads);

  Accounts& accounts_;
  MountQueue& queue_;
  PlannedFiles& files_;
  Gaps gaps_;
};

}  // namespace sluice::policy
