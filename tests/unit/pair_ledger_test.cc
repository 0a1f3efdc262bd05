// What was trained in place of what: exact counts, and pairs that are drawn evenly.
#include "policy/importance/pair_ledger.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace sluice::policy {
namespace {

uint64_t all_counts(const PairLedger& ledger) {
  uint64_t all = 0;
  for (uint32_t requested = 0; requested < PairLedger::kParts; ++requested) {
    for (uint32_t trained = 0; trained < PairLedger::kParts; ++trained) {
      all += ledger.count(requested, trained);
    }
  }
  return all;
}

TEST(PairLedger, CountsByPartsOfTheDataset) {
  PairLedger ledger;
  ledger.add({0, 99}, 100);
  ledger.add({19, 80}, 100);
  ledger.add({20, 79}, 100);
  EXPECT_EQ(ledger.count(0, 4), 2U);
  EXPECT_EQ(ledger.count(1, 3), 1U);
  EXPECT_EQ(all_counts(ledger), 3U);
  EXPECT_EQ(ledger.seen(), 3U);
  EXPECT_EQ(ledger.pairs(), (std::vector<PairLedger::Pair>{{0, 99}, {19, 80}, {20, 79}}));
}

TEST(PairLedger, TheLastSampleOfTheLargestDatasetIsInItsLastPart) {
  constexpr uint64_t kLargest = uint64_t{1} << 32;
  PairLedger ledger;
  ledger.add({UINT32_MAX, 0}, kLargest);
  ledger.add({0, 0}, 1);
  EXPECT_EQ(ledger.count(4, 0), 1U);
  EXPECT_EQ(ledger.count(0, 0), 1U);
}

// Early pairs must not stay for ever, nor late ones replace them all.
TEST(PairLedger, EachPairIsEquallyLikelyToBeAmongThoseThatStay) {
  constexpr uint32_t kAll = 100 * PairLedger::kMostPairs;
  PairLedger ledger;
  for (uint32_t i = 0; i < kAll; ++i) ledger.add({i, kAll - 1 - i}, kAll);
  ASSERT_EQ(ledger.pairs().size(), PairLedger::kMostPairs);
  std::array<int, 4> quarters{};
  for (const PairLedger::Pair& pair : ledger.pairs()) {
    EXPECT_EQ(pair.trained, kAll - 1 - pair.requested);
    ++quarters[pair.requested / (kAll / 4)];
  }
  // Four standard deviations of a binomial distribution.
  for (const int quarter : quarters) EXPECT_NEAR(quarter, PairLedger::kMostPairs / 4.0, 40);
  EXPECT_EQ(ledger.seen(), kAll);
  EXPECT_EQ(all_counts(ledger), kAll);
}

}  // namespace
}  // namespace sluice::policy
