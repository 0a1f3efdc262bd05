// A simulated world for the tests of the scheduler: one file on one mount, and readers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/replay/simulator.h"

namespace sluice::test {

using policy::FileId;
using policy::PlanOptions;
using policy::SessionMetrics;
using protocol::SessionMetric;

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kBlock = 128 * kKiB;
inline constexpr uint64_t kCell = 8 * kMiB;

inline uint64_t metric(Simulator& world, SessionId session, SessionMetric which) {
  const SessionMetrics* all = world.scheduler.accounts().metrics(session);
  return all == nullptr ? 0 : (*all)[static_cast<size_t>(which)];
}

struct World : Simulator {
  explicit World(Storage storage = {}, uint64_t size = 1024 * kMiB, PlanOptions options = {}) {
    add_mount(1, kBlock, 48, storage);
    scheduler.add_session(SessionId{1}, options, true, 0);
    add_file(FileId{1}, size, 1);
  }
};

// A reader of a mapping comes to `piece` of file 1 and waits for it, and its page table is looked
// at. Adds to *asked what its own faults read, in bytes. Returns the time.
inline uint64_t read_mapped(Simulator& world, policy::Range piece, uint64_t reader, uint64_t time,
                            uint64_t* asked) {
  *asked += piece.length() - world.cached(FileId{1}, piece);
  time = world.demand(FileId{1}, piece, time);
  world.access(FileId{1}, {policy::Access::Kind::kSeen, piece.begin, piece.length(), time,
                           reader << 32, SessionId{1}});
  world.advance_to(time);
  return time;
}

enum class Signs { kTrips, kReads };

// Reads [begin, end) of file 1 at `rate`, telling as a library would. Returns seconds.
inline double scan(Simulator& world, uint64_t begin, uint64_t end, double rate, Signs signs,
                   uint64_t* demanded = nullptr, uint64_t reader = 1ULL << 32) {
  constexpr uint64_t kRecord = 196 * kKiB;
  const uint64_t start = world.now();
  uint64_t time = start, cell = UINT64_MAX;
  for (uint64_t at = begin; at < end; at += kRecord) {
    const Range record{at, std::min(at + kRecord, end)};
    if (signs == Signs::kTrips && at / kCell != cell) {
      cell = at / kCell;
      world.access(FileId{1},
                   {Access::Kind::kTrip, at, kCell - at % kCell, time, reader, SessionId{1}});
    }
    const uint64_t missing = record.length() - world.cached(FileId{1}, record);
    time = world.demand(FileId{1}, record, time);
    if (demanded != nullptr && missing > 0) *demanded += missing;
    if (signs == Signs::kReads) {
      world.access(FileId{1},
                   {Access::Kind::kRead, at, record.length(), time, reader, SessionId{1}});
    }
    if (rate > 0) {
      time = std::max(time, start + static_cast<uint64_t>(static_cast<double>(record.end - begin) /
                                                          rate * 1e9));
    }
    world.advance_to(time);
  }
  return static_cast<double>(time - start) / 1e9;
}

}  // namespace sluice::test
