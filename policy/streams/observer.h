// Follows one process's mapping of one file by scanning its page table: pages that were mapped
// since the last scan were read. It scans often near the readers' positions, now and then the whole
// mapping, and less and less often while nothing happens.
//
// Pure except for the PageTable it is given; time is an argument. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/streams/page_table.h"
#include "policy/streams/stream.h"
#include "policy/util/ids.h"
#include "policy/util/interval_set.h"

namespace sluice::policy {

// What the observer needs to know of a stream of its file.
struct ObservedStream {
  uint64_t position = 0, frontier = 0;  // bytes
  double rate = 0;                      // bytes per second
  bool confirmed = false;
};

class Observer {
 public:
  // The mapping shows [offset, offset + length) of the file at `address`. `reader` and `session`
  // are copied into each Access.
  Observer(uint64_t address, uint64_t offset, uint64_t length, uint64_t reader, SessionId session,
           uint64_t now_ns);

  // Scans, and appends what was newly mapped. False: the page table can no longer be read.
  bool poll(PageTable& table, std::span<const ObservedStream> streams, uint64_t now_ns,
            std::vector<Access>* found);
  // The last poll took `cost_ns`: scanning must stay cheap.
  void spent(uint64_t cost_ns, uint64_t now_ns);
  // The job unmapped its pages of this range of the file (zapped them): they will be found again.
  void unmapped(Range file_range) { known_.remove(file_range); }

  uint64_t next_ns() const { return next_ns_; }

 private:
  bool scan(PageTable& table, Range file_range, uint64_t now_ns, std::vector<Access>* found);
  uint64_t interval(std::span<const ObservedStream> streams, uint64_t now_ns) const;

  const uint64_t address_, offset_, length_, reader_;
  const SessionId session_;
  IntervalSet known_;  // offsets in the file whose pages were found mapped
  uint64_t next_ns_, next_whole_ns_;
  uint64_t active_ns_;  // when something was last found, or the mapping was made
  uint64_t interval_ns_ = 0;
  uint64_t next_ahead_ns_ = 0;
  bool whole_ = false;  // the last poll scanned the whole mapping
  bool ahead_ = false;  // all of it that is ahead of the readers
};

}  // namespace sluice::policy
