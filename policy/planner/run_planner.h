// Runs of neighbouring records that are read with one request, where a request costs as much as
// many bytes. A run of the file is a package of records (iCache, HPCA '23, section III-C, writes
// packages for that, which LMDB's order makes unnecessary).
//
// Of a file that fits into memory, the neighbours of a record are read with it, since their turn
// comes. Of a file that does not fit, records that are needed soon wait for each other
// (gatherer.h), and the pages between them are dropped. Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_file.h"
#include "policy/planner/retention.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class RunPlanner {
 public:
  RunPlanner(Residency* residency, SampleBook* samples, Accounts* accounts, MountQueue* queue,
             PlannedFiles* files, Retention* retention)
      : residency_(*residency),
        samples_(samples),
        accounts_(*accounts),
        queue_(*queue),
        files_(*files),
        retention_(*retention) {}

  // Whether the record may wait for nearby records that are needed soon. `own`: its pages.
  bool gathers(FileId file, SessionId session, Range own);
  // The record waits; from here on it counts as in flight.
  void wait(const WantedExtent& wanted, Range own);
  // The record's pages and, of a file that stays in memory, what is read with them.
  Range run_around(const WantedExtent& wanted, Range own, uint64_t now_ns);

  // Orders have changed: a read that no order wants must not count for a sample of the new order.
  void cancel_unwanted();
  void remove_file(FileId file);
  void remove_session(SessionId session);
  // Only while at least as many bytes wait as are in flight: an early request has gathered little.
  void start_waiting(uint64_t now_ns, std::vector<PlannedRead>* reads);

  // A read brought in `got`, of which samples need `needed`.
  void on_arrived(PlannedFile& file, const Request& request, Range got,
                  const std::vector<Range>& needed);
  // A read of the range took as long as storage does: what was assumed cached is not, nor what
  // surrounds it.
  void assume_evicted(PlannedFile& file, Range range);

 private:
  bool is_missing(FileId file_id, Range range);
  bool still_waits(const WantedExtent& wanted) const;
  void cancel(const std::vector<WaitingRead>& removed);
  void start_group(const std::vector<WaitingRead>& group, uint64_t now_ns,
                   std::vector<PlannedRead>* reads);

  Residency& residency_;
  SampleBook* const samples_;
  Accounts& accounts_;
  MountQueue& queue_;
  PlannedFiles& files_;
  Retention& retention_;
  uint64_t seen_orders_ = 0;  // JobOrders::changes() at the last check
};

}  // namespace sluice::policy
