// The first bytes of the file that follows in a numbered row of files that are read one after the
// other: when nothing of the file before it is left to be read, so that the link does not rest
// until the job opens the next one. Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/gaps.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_file.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class SequelPlanner {
 public:
  SequelPlanner(Residency* residency, Accounts* accounts, MountQueue* queue, PlannedFiles* files)
      : accounts_(*accounts), queue_(*queue), files_(*files), gaps_(residency, accounts, queue) {}

  // Half of the file was read, by `session`: what follows it will be asked for, once.
  void on_step(FileId id, PlannedFile& file, const Stream& stream);
  // Files of which half was read since the last call.
  struct Begun {
    FileId file{};
    SessionId session{};
  };
  std::vector<Begun> take_begun();
  // `next` will be read after `file`.
  void set(FileId file, FileId next);

  void plan(uint64_t mount, uint64_t now_ns, std::vector<PlannedRead>* reads);

 private:
  // The session that reads the file to its end, all of which is in memory or on its way.
  std::optional<SessionId> ending(const PlannedFile& file, uint64_t now_ns) const;
  uint64_t window(const PlannedFile& file, SessionId session) const;

  Accounts& accounts_;
  MountQueue& queue_;
  PlannedFiles& files_;
  Gaps gaps_;
  std::vector<Begun> begun_;
};

}  // namespace sluice::policy
