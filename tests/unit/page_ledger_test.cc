// The ledger against a model that is right at sight: one state for each byte, and each event
// written out as what it means.
#include "policy/planner/page_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

namespace sluice::policy {
namespace {

constexpr size_t kBytes = 96;
constexpr int kEvents = static_cast<int>(PageEvent::kDropEnded) + 1;

// Why a byte is in memory, if it is.
enum class Memory { kUnknown, kRead, kNeighbour, kFound, kReady };

struct Byte {
  bool waiting = false, reading = false, called = false;
  bool behind = false, unmapped = false, dropping = false;
  Memory memory = Memory::kUnknown;
  SessionId owner{};

  // True: the event applies to it.
  bool on(PageEvent event, SessionId session) {
    switch (event) {
      case PageEvent::kWanted:
        if (!reading) return false;
        return called = true;
      case PageEvent::kWaits:
        return waiting = called = true;
      case PageEvent::kWaitCancelled:
        waiting = called = false;
        return true;
      case PageEvent::kReadBegun:
        waiting = false;
        return reading = true;
      case PageEvent::kReadEnded:
        reading = called = false;
        return true;
      case PageEvent::kPrefetched:  // the owner that has it ready already is charged for it
        return memory != Memory::kReady && become(Memory::kReady, session);
      case PageEvent::kNeighbourRead:
        return memory != Memory::kReady && become(Memory::kNeighbour);
      case PageEvent::kFoundCached:  // what Sluice has prefetched was not cached without it
        return memory != Memory::kReady && memory != Memory::kFound && become(Memory::kFound);
      case PageEvent::kPassed:
        return (memory == Memory::kReady || memory == Memory::kFound) && become(Memory::kUnknown);
      case PageEvent::kPassedForGood:
        if (memory != Memory::kReady || owner != session) return false;
        behind = true;
        return become(Memory::kUnknown);
      case PageEvent::kSampleRead:
        return become(Memory::kRead);
      case PageEvent::kReleased:
        return memory == Memory::kReady && owner == session && become(Memory::kUnknown);
      case PageEvent::kNotCached:
        return memory == Memory::kRead && become(Memory::kUnknown);
      case PageEvent::kSeemsEvicted:
        return memory != Memory::kReady && memory != Memory::kUnknown && become(Memory::kUnknown);
      case PageEvent::kFallenBehind:
        return behind = true;
      case PageEvent::kUnmapped:
        return unmapped = true;
      case PageEvent::kMapsIgnored:
        if (!unmapped) return false;
        unmapped = false;
        return true;
      case PageEvent::kDropped:
        behind = unmapped = false;
        return true;
      case PageEvent::kDropBegun:
        return dropping = true;
      case PageEvent::kDropEnded:
        dropping = false;
        return true;
    }
    return false;
  }

  bool become(Memory what, SessionId session = kNoSession) {
    memory = what;
    owner = session;
    return true;
  }

  bool has(uint16_t facts) const {
    return ((facts & kWaiting) != 0 && waiting) || ((facts & kReading) != 0 && reading) ||
           ((facts & kWanted) != 0 && called) || ((facts & kBehind) != 0 && behind) ||
           ((facts & kUnmapped) != 0 && unmapped) || ((facts & kDropping) != 0 && dropping) ||
           ((facts & kRead) != 0 && memory == Memory::kRead) ||
           ((facts & kNeighbour) != 0 && memory == Memory::kNeighbour) ||
           ((facts & kFound) != 0 && memory == Memory::kFound) ||
           ((facts & kReady) != 0 && memory == Memory::kReady);
  }
};

class Model {
 public:
  void on(PageEvent event, Range range, SessionId session, const PageLedger::Changed& changed) {
    std::array<uint64_t, kPageFacts> had{};
    std::map<SessionId, uint64_t> ready, reported;
    uint64_t some = 0, all = 0;
    for (uint64_t at = range.begin; at < range.end; ++at) {
      const Byte before = bytes_[at];
      if (!bytes_[at].on(event, session)) continue;
      ++all;
      some += before.has(UINT16_MAX) ? 1 : 0;
      for (size_t fact = 0; fact < kPageFacts; ++fact) {
        had[fact] += before.has(static_cast<uint16_t>(1 << fact)) ? 1 : 0;
      }
      if (before.memory == Memory::kReady) ++ready[before.owner];
    }
    // Bytes without any fact are not counted where the event only takes facts away.
    EXPECT_GE(changed.bytes, some);
    EXPECT_LE(changed.bytes, all);
    for (size_t fact = 0; fact < kPageFacts; ++fact) {
      EXPECT_EQ(changed.had(static_cast<PageFact>(1 << fact)), had[fact]);
    }
    for (const auto& [owner, count] : changed.ready) reported[owner] += count;
    EXPECT_EQ(reported, ready);
    if (event == PageEvent::kPrefetched || event == PageEvent::kFoundCached ||
        event == PageEvent::kReleased) {
      EXPECT_EQ(changed.bytes, all);  // what is charged and counted
    }
  }

  void compare(const PageLedger& ledger, Range range) const {
    for (uint16_t facts = 1; facts < 1 << kPageFacts;
         facts = static_cast<uint16_t>(facts * 2 + 1)) {
      std::vector<Range> pieces;
      for (uint64_t at = range.begin; at < range.end; ++at) {
        if (!bytes_[at].has(facts)) continue;
        if (!pieces.empty() && pieces.back().end == at) {
          ++pieces.back().end;
        } else {
          pieces.push_back({at, at + 1});
        }
      }
      EXPECT_EQ(ledger.pieces(range, facts), pieces);
      uint64_t sum = 0;
      for (const Range& piece : pieces) sum += piece.length();
      EXPECT_EQ(ledger.covered(range, facts), sum);
      EXPECT_EQ(ledger.contains(range, facts), sum == range.length());
    }
    std::set<SessionId> owners;
    for (const Byte& byte : bytes_) {
      if (byte.memory == Memory::kReady) owners.insert(byte.owner);
    }
    const std::vector<SessionId> listed = ledger.owners();
    EXPECT_EQ(std::set<SessionId>(listed.begin(), listed.end()), owners);
    for (const SessionId owner : {SessionId{1}, SessionId{2}, SessionId{3}}) {
      const auto mine = [owner](const Byte& byte) {
        return byte.memory == Memory::kReady && byte.owner == owner;
      };
      const auto begin = bytes_.begin() + static_cast<ptrdiff_t>(range.begin);
      const auto end = bytes_.begin() + static_cast<ptrdiff_t>(range.end);
      EXPECT_EQ(ledger.ready(owner, range), static_cast<uint64_t>(std::count_if(begin, end, mine)));
      EXPECT_EQ(ledger.ready(owner),
                static_cast<uint64_t>(std::count_if(bytes_.begin(), bytes_.end(), mine)));
      const auto gap = std::find_if_not(begin, bytes_.end(), mine);
      EXPECT_EQ(ledger.ready_until(owner, range.begin),
                static_cast<uint64_t>(gap - bytes_.begin()));
    }
    for (size_t fact = 0; fact < kPageFacts; ++fact) {
      const auto bit = static_cast<uint16_t>(1 << fact);
      EXPECT_EQ(ledger.total(static_cast<PageFact>(bit)),
                static_cast<uint64_t>(std::count_if(bytes_.begin(), bytes_.end(),
                                                    [bit](const Byte& b) { return b.has(bit); })));
    }
    EXPECT_EQ(ledger.size(), runs());
  }

 private:
  // Maximal runs of bytes of one state, without those that have no fact.
  size_t runs() const {
    const auto same = [](const Byte& a, const Byte& b) {
      for (size_t fact = 0; fact < kPageFacts; ++fact) {
        const auto bit = static_cast<uint16_t>(1 << fact);
        if (a.has(bit) != b.has(bit)) return false;
      }
      return a.owner == b.owner;
    };
    size_t runs = 0;
    for (size_t at = 0; at < kBytes; ++at) {
      const bool begins = at == 0 || !same(bytes_[at - 1], bytes_[at]);
      if (begins && bytes_[at].has(UINT16_MAX)) ++runs;
    }
    return runs;
  }

  std::array<Byte, kBytes> bytes_{};
};

TEST(PageLedger, AgreesWithAModelOfSingleBytes) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 draw(seed);
    PageLedger ledger;
    Model model;
    const auto below = [&draw](uint64_t end) { return draw() % end; };
    const uint64_t longest = seed % 3 == 0 ? 8 : kBytes;
    for (int step = 0; step < 200; ++step) {
      const auto event = static_cast<PageEvent>(below(kEvents));
      const uint64_t begin = below(kBytes);
      const Range range{begin, std::min<uint64_t>(kBytes, begin + below(longest + 1))};
      const SessionId owner{static_cast<uint32_t>(1 + below(3))};
      model.on(event, range, owner, ledger.on(event, range, owner));
      const uint64_t look = below(kBytes);
      model.compare(ledger, {look, std::min<uint64_t>(kBytes, look + 1 + below(kBytes))});
      if (HasFailure()) FAIL() << "seed " << seed << " step " << step;
    }
  }
}

// The record of a random file that fits: read beside another, its turn, its reading.
TEST(PageLedger, FollowsARecordThatIsReadBesideAnother) {
  PageLedger ledger;
  ledger.on(PageEvent::kReadBegun, {0, 64});
  ledger.on(PageEvent::kWanted, {0, 16});
  EXPECT_EQ(ledger.pieces(kWanted), (std::vector<Range>{{0, 16}}));
  ledger.on(PageEvent::kReadEnded, {0, 64});
  EXPECT_EQ(ledger.on(PageEvent::kPrefetched, {0, 16}, SessionId{7}).bytes, 16U);
  ledger.on(PageEvent::kNeighbourRead, {16, 64});
  EXPECT_EQ(ledger.on(PageEvent::kPrefetched, {16, 32}, SessionId{7}).had(kNeighbour), 16U);
  EXPECT_EQ(ledger.ready(SessionId{7}), 32U);
  const auto read = ledger.on(PageEvent::kSampleRead, {0, 32});
  EXPECT_EQ(read.had(kReady), 32U);
  EXPECT_EQ(ledger.ready(SessionId{7}), 0U);
  EXPECT_EQ(ledger.pieces(kMayBeCached), (std::vector<Range>{{0, 64}}));
  EXPECT_EQ(ledger.size(), 2U);
}

// A byte that one session has prefetched is in memory once, and charged once.
TEST(PageLedger, ChargesTheFirstSessionAlone) {
  PageLedger ledger;
  EXPECT_EQ(ledger.on(PageEvent::kPrefetched, {0, 100}, SessionId{1}).bytes, 100U);
  EXPECT_EQ(ledger.on(PageEvent::kPrefetched, {50, 150}, SessionId{2}).bytes, 50U);
  EXPECT_EQ(ledger.on(PageEvent::kFoundCached, {0, 200}).bytes, 50U);
  EXPECT_EQ(ledger.ready(SessionId{1}), 100U);
  EXPECT_EQ(ledger.ready(SessionId{2}), 50U);
}

TEST(PageLedger, ForgetsWhatIsNotChargedWhenItIsLarge) {
  PageLedger ledger;
  ledger.on(PageEvent::kPrefetched, {0, 4}, SessionId{1});
  for (uint64_t at = 1; at <= PageLedger::kMostPieces; ++at) {
    ledger.on(PageEvent::kSampleRead, {at * 8, at * 8 + 4});
  }
  ledger.limit_size();
  EXPECT_EQ(ledger.size(), 1U);
  EXPECT_EQ(ledger.ready(SessionId{1}), 4U);
}

TEST(PageLedger, WhereMoreIsChargedNotEachReadScansIt) {
  constexpr uint64_t kCharged = PageLedger::kMostPieces + 10;
  PageLedger ledger;
  auto read_next = [&ledger, at = kCharged]() mutable {
    const Range range{at * 8, at * 8 + 4};
    ++at;
    ledger.on(PageEvent::kSampleRead, range);
    ledger.limit_size();
    return ledger.covered(range, kRead) != 0;  // else it was scanned, and discarded
  };
  for (uint64_t at = 0; at < kCharged; ++at) {
    ledger.on(PageEvent::kPrefetched, {at * 8, at * 8 + 4}, SessionId{1});
  }
  EXPECT_FALSE(read_next());
  uint64_t scans = 0;
  for (uint64_t i = 0; i < kCharged; ++i) scans += read_next() ? 0 : 1;
  EXPECT_EQ(ledger.ready(SessionId{1}), kCharged * 4);
  EXPECT_GE(scans, 1U);
  EXPECT_LE(scans, 4U);
  EXPECT_LT(ledger.size(), kCharged + PageLedger::kMostPieces);
}

}  // namespace
}  // namespace sluice::policy
