// The next piece of a range that must be read: what is neither in memory, nor on its way, nor was
// read by some reader. Pure; one thread.
#pragma once

#include <optional>

#include "policy/planner/accounts.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_file.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class Gaps {
 public:
  Gaps(Residency* residency, Accounts* accounts, MountQueue* queue)
      : residency_(*residency), accounts_(*accounts), queue_(*queue) {}

  // At most one block. The cursor is moved to it, or to the range's end; what is found cached is
  // counted for the session.
  std::optional<Range> next(FileId id, PlannedFile& file, SessionId session, Range range,
                            Cursor* cursor);

 private:
  Residency& residency_;
  Accounts& accounts_;
  MountQueue& queue_;
};

}  // namespace sluice::policy
