// Which samples are in which pack: decided in memory.
#include "optimizer/packs/pack_index.h"

#include <gtest/gtest.h>

#include <map>

#include "policy/util/random.h"

namespace sluice::optimizer {
namespace {

using Place = PackIndex::Place;
using Rank = PackIndex::Rank;

TEST(PackIndex, TheNewestWins) {
  PackIndex index;
  index.add(5, 1000, {10, 20, 30}, {{{1, 0}, {2, 1}, {3, 2}}}, Rank::kNewest);
  index.add(6, 500, {40, 50}, {{{2, 0}, {4, 1}}}, Rank::kNewest);
  index.add(4, 700, {60, 70}, {{{3, 0}, {9, 1}}}, Rank::kOldest);
  EXPECT_EQ(index.find(1), (Place{5, 0}));
  EXPECT_EQ(index.find(2), (Place{6, 0}));
  EXPECT_EQ(index.find(3), (Place{5, 2}));
  EXPECT_EQ(index.find(9), (Place{4, 1}));
  EXPECT_EQ(index.find(7), std::nullopt);
  EXPECT_EQ(index.packs(), 3U);
  EXPECT_EQ(index.samples(), 5U);
  EXPECT_EQ(index.bytes(), 2200U);
  EXPECT_EQ(index.useful(), 10U + 40 + 30 + 50 + 70);
  EXPECT_EQ(index.length({4, 1}), 70U);
}

TEST(PackIndex, TheLastWithinAPackWins) {
  for (const Rank rank : {Rank::kNewest, Rank::kOldest}) {
    PackIndex index;
    index.add(1, 100, {10, 20}, {{{7, 0}, {7, 1}}}, rank);
    EXPECT_EQ(index.find(7), (Place{1, 1}));
    EXPECT_EQ(index.useful(), 20U);
    EXPECT_EQ(index.samples(), 1U);
  }
}

TEST(PackIndex, UselessPacksAreReported) {
  PackIndex index;
  index.add(1, 100, {10, 20}, {{{1, 0}, {2, 1}}}, Rank::kNewest);
  index.add(2, 100, {10}, {{{1, 0}}}, Rank::kNewest);
  EXPECT_TRUE(index.take_empty().empty());
  index.add(3, 100, {20}, {{{2, 0}}}, Rank::kNewest);
  EXPECT_EQ(index.take_empty(), std::vector<uint32_t>{1});
  EXPECT_TRUE(index.take_empty().empty());
  index.remove_sample(2, {1, 1});  // not where it is now
  EXPECT_EQ(index.find(2), (Place{3, 0}));
  index.remove_sample(2, {3, 0});
  EXPECT_EQ(index.take_empty(), std::vector<uint32_t>{3});
  index.add(0, 100, {5}, {{{1, 0}}}, Rank::kOldest);
  index.add(4, 100, {5}, {}, Rank::kNewest);
  EXPECT_EQ(index.take_empty(), (std::vector<uint32_t>{0, 4}));
  EXPECT_EQ(index.packs(), 1U);
  EXPECT_EQ(index.bytes(), 100U);
}

TEST(PackIndex, PacksOfLittleUseAreReportedOnce) {
  PackIndex index;
  index.add(1, 200, {50, 50, 1}, {{{1, 0}, {2, 1}, {3, 2}}}, Rank::kNewest);
  index.remove_sample(3, {1, 2});
  EXPECT_EQ(index.take_sparse(), std::nullopt);  // 100 of 101
  index.remove_sample(1, {1, 0});
  EXPECT_EQ(index.take_sparse(), 1U);  // 50 of 101
  EXPECT_EQ(index.take_sparse(), std::nullopt);
  // One that has gone meanwhile is notified no more.
  index.add(2, 200, {50, 50, 1}, {{{5, 0}, {6, 1}, {7, 2}}}, Rank::kNewest);
  index.remove_sample(5, {2, 0});
  index.remove_sample(6, {2, 1});
  EXPECT_TRUE(index.remove(2));
  EXPECT_FALSE(index.remove(2));
  EXPECT_EQ(index.take_sparse(), std::nullopt);
  EXPECT_EQ(index.find(7), std::nullopt);
}

// Against a plain model, through every kind of change.
TEST(PackIndex, CountsWhatIsThere) {
  constexpr uint32_t kHashes = 3000;
  constexpr uint32_t kEach = 40;
  Random random(7);
  PackIndex index;
  std::map<uint64_t, std::pair<Place, uint32_t>> model;  // place and length
  std::map<uint32_t, uint64_t> bytes;
  for (uint32_t step = 0; step < 4000; ++step) {
    if (random.below(3) == 0) {
      std::vector<uint32_t> lengths;
      std::vector<PackIndex::Use> use;
      for (uint32_t entry = 0; entry < kEach; ++entry) {
        lengths.push_back(random.below(100));
        const uint64_t hash = random.below(kHashes);
        use.push_back({hash, entry});
        model[hash] = {{step, entry}, lengths.back()};
      }
      bytes[step] = 5000 + step;
      index.add(step, 5000 + step, lengths, use, Rank::kNewest);
    } else if (random.below(2) == 0) {
      const uint64_t hash = random.below(kHashes);
      const auto at = model.find(hash);
      if (at != model.end()) index.remove_sample(hash, at->second.first);
      model.erase(hash);
    } else if (!bytes.empty()) {
      auto victim = bytes.begin();
      std::advance(victim, random.below(static_cast<uint32_t>(bytes.size())));
      const uint32_t pack = victim->first;
      EXPECT_TRUE(index.remove(pack));
      bytes.erase(victim);
      std::erase_if(model, [&](const auto& one) { return one.second.first.pack == pack; });
    }
    for (const uint32_t pack : index.take_empty()) {
      EXPECT_EQ(bytes.erase(pack), 1U);
      EXPECT_FALSE(index.has(pack));
    }
    while (index.take_sparse()) {
    }
    uint64_t useful = 0, whole = 0;
    for (const auto& [hash, one] : model) useful += one.second;
    for (const auto& [pack, size] : bytes) whole += size;
    ASSERT_EQ(index.useful(), useful);
    ASSERT_EQ(index.samples(), model.size());
    ASSERT_EQ(index.bytes(), whole);
    ASSERT_EQ(index.packs(), bytes.size());
  }
  for (uint64_t hash = 0; hash < kHashes; ++hash) {
    const auto at = model.find(hash);
    const std::optional<Place> found = index.find(hash);
    ASSERT_EQ(found.has_value(), at != model.end());
    if (!found) continue;
    EXPECT_EQ(*found, at->second.first);
  }
}

}  // namespace
}  // namespace sluice::optimizer
