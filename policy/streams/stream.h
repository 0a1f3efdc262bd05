// What the tracker knows about one sequential run in one file. Plain data, no clock, no I/O.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/util/ids.h"

namespace sluice::policy {

// Evidence of reading, from any source: a checkpoint, a read() call, the page table.
struct Access {
  enum class Kind {
    kTrip,   // first touch at offset; the reader may have come to offset + length unseen
    kRead,   // exactly [offset, offset + length) was read
    kSeen,   // [offset, offset + length) was found mapped since the last scan
    kBegun,  // a call has begun that will read exactly [offset, offset + length)
  };
  Kind kind = Kind::kRead;
  uint64_t offset = 0;  // bytes
  uint64_t length = 0;  // bytes, > 0
  uint64_t time_ns = 0;
  uint64_t reader = 0;     // pid << 32 | tid
  SessionId session{};     // of the reader
  bool page = false;       // kTrip: one page of a cell was opened; next trip a distance on
  bool worker = false;     // by a process other than the one that uses the data
  uint64_t waited_ns = 0;  // by the session, in total
};

struct StreamReader {
  uint64_t id = 0;
  uint64_t position = 0;  // bytes: has read at least up to here
  uint64_t time_ns = 0;   // of its last event
};

struct Stream {
  uint32_t id = 0;
  SessionId session{};     // of the latest event
  uint64_t begin = 0;      // where it began
  uint64_t position = 0;   // furthest byte known to be wanted; all before it were, too
  uint64_t opened = 0;     // >= position: the reader may have come this far unseen, or will come
  uint64_t events = 0;     // events that belong to it
  uint64_t advances = 0;   // of these, those that moved it forward
  bool confirmed = false;  // a run, not a single access
  bool exact = false;      // events give exact ranges (all but kTrip)
  uint64_t first_ns = 0, last_ns = 0;
  uint64_t last_reader = 0;
  double rate = 0;  // bytes per second that the readers consume; 0: not known
  uint64_t mark_position = 0, mark_ns = 0;  // start of the measurement of `rate`
  std::vector<StreamReader> readers;        // most recent last, bounded

  // All before this offset has been passed by every active reader of the stream.
  uint64_t tail(uint64_t now_ns, uint64_t idle_ns) const {
    uint64_t low = position;
    for (const StreamReader& reader : readers) {
      if (now_ns - reader.time_ns <= idle_ns && reader.position < low) low = reader.position;
    }
    return low;
  }
};

}  // namespace sluice::policy
