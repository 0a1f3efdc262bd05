// Finds the sequential runs in the accesses to one file, by any reader: readers that take turns
// through one region are one stream, a far-off access begins another.
//
// Pure: no clock, no I/O, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "policy/streams/stream.h"

namespace sluice::policy {

inline constexpr size_t kMaxStreams = 32;        // of one file; evicts the longest idle
inline constexpr size_t kMaxStreamReaders = 64;  // remembered per stream
inline constexpr uint32_t kOrphanLimit = 32;     // more runs begun than continued by this: random

class Tracker {
 public:
  struct Outcome {
    Stream* stream = nullptr;  // nullptr: access is random, and there is no stream yet
    bool begun = false;        // the first event of a stream
    bool confirmed = false;    // this event confirmed the stream
    bool merged = false;       // the stream met another one, which is part of it now
    uint64_t before = 0;       // the stream's position before the event
  };

  // Handles an event. REQUIRES: access.length > 0, offset + length does not overflow. The stream
  // is valid until the next call; `evicted`, if not null, receives the ids of streams that were
  // evicted or merged into this one.
  Outcome on_access(const Access& access, std::vector<uint32_t>* evicted);

  // The preload library reports random access through a mapping: from now on a stream needs two
  // events, and unconfirmed streams end.
  void on_random(std::vector<uint32_t>* evicted);

  // Process `pid` ended or released the file: it no longer determines a stream's tail.
  void remove_process(uint32_t pid);

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

  std::list<Stream> streams_;  // longest idle first
  uint32_t next_id_ = 1;
  uint32_t orphans_ = 0;  // +1 for a stream begun, -1 for one continued, bounded
};

}  // namespace sluice::policy
