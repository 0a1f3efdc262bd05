// Finds the sequential runs in the accesses to one file, whoever makes them: readers that take
// turns through one region are one stream, a far-off access begins another.
//
// Pure: no clock, no I/O, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "policy/streams/stream.h"

namespace sluice::optimizer {

inline constexpr size_t kMaxStreams = 32;        // of one file; the longest idle one goes
inline constexpr size_t kMaxStreamReaders = 64;  // remembered per stream
inline constexpr uint32_t kOrphanLimit = 32;     // more runs begun than continued: random

class Tracker {
 public:
  struct Outcome {
    Stream* stream = nullptr;  // nullptr: access is random, nothing is to be made of it yet
    bool begun = false;        // the first event of a stream
    bool confirmed = false;    // this event confirmed it
    bool merged = false;       // another stream that it met is part of it now
    uint64_t before = 0;       // the stream's position before the event
  };

  // Takes an event. REQUIRES: access.length > 0, offset + length does not overflow. The stream
  // stays valid until the next call; `evicted`, if not null, gets the ids of streams forgotten or
  // merged into this one.
  Outcome on_access(const Access& access, std::vector<uint32_t>* evicted);

  // The library says that access through a mapping is random: no stream without two events from
  // now on, and unconfirmed ones end.
  void on_random(std::vector<uint32_t>* evicted);

  // Process `pid` ended or lets go of the file: it holds no stream's tail any more.
  void forget_process(uint32_t pid);

  bool random() const { return orphans_ >= kOrphanLimit; }
  const std::list<Stream>& streams() const { return streams_; }
  Stream* find(uint32_t id);

 private:
  Stream* match(const Access& access);
  Stream* begin(const Access& access, std::vector<uint32_t>* evicted);
  void extend(Stream& stream, const Access& access);
  void note_reader(Stream& stream, const Access& access);
  Stream* merge(Stream* stream, Outcome* outcome, std::vector<uint32_t>* evicted);
  void evict_one(std::vector<uint32_t>* evicted);

  std::list<Stream> streams_;  // the longest idle first
  uint32_t next_id_ = 1;
  uint32_t orphans_ = 0;  // one up for a stream begun, one down for one continued, bounded
};

}  // namespace sluice::optimizer
