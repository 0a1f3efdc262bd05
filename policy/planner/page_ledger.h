// What is known of each byte of a file: what is being done with it, why it is in memory, and
// whether it may be dropped. One map from range to state, which changes by events alone; kEffects
// (page_ledger.cc) is the table of transitions. Pure; one thread.
//
// Invariants:
//   1. A byte has at most one of kRead, kNeighbour, kFound and kReady.
//   2. It has an owner if and only if it is kReady: the session whose budget it takes, once.
//   3. Neighbouring pieces differ; a byte without any fact is in no piece.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "policy/util/ids.h"
#include "policy/util/interval_set.h"

namespace sluice::policy {

// Facts of a byte, to be combined.
enum PageFact : uint16_t {
  kWaiting = 1 << 0,    // its read waits for reads of nearby records (gatherer.h)
  kReading = 1 << 1,    // is being read
  kWanted = 1 << 2,     // of these two, what a coming sample needs
  kRead = 1 << 3,       // a sample was read here; may still be cached
  kNeighbour = 1 << 4,  // read together with others before its turn; may still be cached
  kFound = 1 << 5,      // was cached without Sluice; not passed
  kReady = 1 << 6,      // prefetched for a session; not passed
  kBehind = 1 << 7,     // prefetched and passed, may be dropped
  kUnmapped = 1 << 8,   // no longer mapped by its reader
  kDropping = 1 << 9,   // of a record that is not retained, being dropped
};
inline constexpr size_t kPageFacts = 10;
inline constexpr uint16_t kMayBeCached = kRead | kNeighbour | kFound | kReady;

enum class PageEvent : uint8_t {
  kWanted,         // a sample needs what is being read
  kWaits,          // a sample needs it, and its read waits for others
  kWaitCancelled,  // no sample needs it any more
  kReadBegun,      //
  kReadEnded,      //
  kPrefetched,     // arrived, or is in memory, for the session `owner`
  kNeighbourRead,  // arrived beside what samples need
  kFoundCached,    //
  kPassed,         // by a stream's reader
  kPassedForGood,  // likewise, what is ready for `owner`: it may be dropped
  kSampleRead,     // a sample of it was read
  kReleased,       // what is ready for `owner` is not counted any more
  kNotCached,      // the kernel says so
  kSeemsEvicted,   // its read, or a read near it, took as long as storage does
  kFallenBehind,   // it arrived after its reader had passed
  kUnmapped,       // by its reader
  kMapsIgnored,    // it will not be dropped: whether it is mapped does not matter
  kDropped,        // what was behind
  kDropBegun,      // of a record's pages
  kDropEnded,      //
};

class PageLedger {
 public:
  // What an event changed.
  struct Changed {
    uint64_t bytes = 0;  // to which it applied
    // Of these, bytes that had the fact before; `had(kReady)` is the sum over `ready`.
    uint64_t had(PageFact fact) const;
    std::vector<std::pair<SessionId, uint64_t>> ready;  // by owner: bytes that were ready before

   private:
    friend class PageLedger;
    std::array<uint64_t, kPageFacts> before_{};
  };

  // `owner`: where the event names one.
  Changed on(PageEvent event, Range range, SessionId owner = kNoSession);

  // Bytes of `range` with any of the facts.
  uint64_t covered(Range range, uint16_t facts) const;
  bool contains(Range range, uint16_t facts) const {
    return covered(range, facts) == range.length();
  }
  // The maximal parts of `range` with any of the facts.
  std::vector<Range> pieces(Range range, uint16_t facts) const;
  std::vector<Range> pieces(uint16_t facts) const { return pieces({0, UINT64_MAX}, facts); }
  // Bytes with the fact in all.
  uint64_t total(PageFact fact) const;

  // Bytes of `range` that are ready for the session; in all; and the first byte at or after `from`
  // that is not.
  uint64_t ready(SessionId owner, Range range) const;
  uint64_t ready(SessionId owner) const;
  uint64_t ready_until(SessionId owner, uint64_t from) const;
  std::vector<SessionId> owners() const;  // that have ready bytes

  size_t size() const { return pieces_.size(); }  // entries of the map
  // Beyond kMostPieces entries: drops what may still be cached and is not charged to a session.
  // Where more are charged, again after so many further entries that each pays for a few others.
  void limit_size();
  static constexpr size_t kMostPieces = 1 << 17;

 private:
  struct State {
    uint16_t facts = 0;
    SessionId owner{};
    bool operator==(const State&) const = default;
  };
  struct Piece {
    uint64_t end = 0;
    State state;
  };
  using Pieces = std::map<uint64_t, Piece>;  // by first byte

  void split(uint64_t at);
  // Replaces the state of [begin, end), which is one piece or a gap, and returns what follows it.
  Pieces::iterator put(Pieces::iterator at, Range range, State before, State after);
  void join(Range range);
  void account(State state, uint64_t bytes, bool added);
  Pieces::const_iterator first_in(uint64_t begin) const;

  Pieces pieces_;
  std::array<uint64_t, kPageFacts> totals_{};
  std::map<SessionId, uint64_t> ready_;  // bytes by owner
  size_t scans_above_ = kMostPieces;     // entries
};

}  // namespace sluice::policy
