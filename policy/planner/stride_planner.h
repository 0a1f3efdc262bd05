// Reading ahead of each reader by itself, in files of which readers leave much out: the runs or the
// shares of tensors that it is expected to read next, and nothing between them. Everywhere else
// streams read ahead (stream_planner.h). Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/gaps.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_file.h"
#include "policy/streams/observer.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class StridePlanner {
 public:
  StridePlanner(Residency* residency, Accounts* accounts, MountQueue* queue, PlannedFiles* files)
      : accounts_(*accounts), queue_(*queue), files_(*files), gaps_(residency, accounts, queue) {}

  // Its readers are read ahead of one by one.
  static bool leads(const PlannedFile& file) {
    return file.coverage.holes() || file.shared || file.descended;
  }
  static void note_readers(PlannedFile& file);  // after readers have left

  // The file's tensors are known from now on.
  static void on_tensors(PlannedFile& file);
  struct Match {
    bool expected = false;
    bool descent = false;  // read backwards: no stream begins there
  };
  // REQUIRES: the access is exact.
  static Match on_read(PlannedFile& file, const Access& access);
  void plan(uint64_t mount, uint64_t now_ns, std::vector<PlannedRead>* reads);

  // What some reader of the file will read next is known.
  static bool predicts(const PlannedFile& file, uint64_t now_ns);
  // Nothing says that its readers read parts of tensors.
  static bool whole(const PlannedFile& file);
  // What readers of the file are expected to read; of a sequel, what is there already.
  static IntervalSet needed(const PlannedFile& file, uint64_t idle_ns, uint64_t now_ns);
  // Where the reader is, and where it is expected.
  static void watch(const PlannedFile& file, uint64_t reader, std::vector<ObservedStream>* out);

 private:
  static void begin_again(PlannedFile& file, uint64_t reader, Range range);
  bool plan_one(FileId id, PlannedFile& file, StridedReader& reader, uint64_t now_ns,
                std::vector<PlannedRead>* reads);
  std::optional<Range> next(FileId id, PlannedFile& file, StridedReader& reader);
  std::vector<Range> expected(const PlannedFile& file, const StridedReader& reader) const;
  uint64_t window(const PlannedFile& file, const StridedReader& reader) const;

  Accounts& accounts_;
  MountQueue& queue_;
  PlannedFiles& files_;
  Gaps gaps_;
};

}  // namespace sluice::policy
