// What requests get where samples come from chunks, decided ahead: exactly once, and each chunk
// read for a sample that is delivered then.
#include "policy/chunks/chunk_supply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "policy/chunks/chunk_part.h"
#include "policy/util/random.h"

namespace sluice::policy {
namespace {

constexpr uint32_t kSamples = 3000, kBytes = 1000;

// Chunks of 1 to 2 * `mean` - 1 samples in a random order.
ChunkMap uneven(uint32_t samples, uint32_t mean, uint64_t seed) {
  Random random(mixed(seed));
  std::vector<SampleId> order(samples);
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(&order);
  std::vector<uint32_t> begins{0};
  while (true) {
    const uint32_t next = begins.back() + 1 + random.below(2 * mean - 1);
    if (next >= samples) break;
    begins.push_back(next);
  }
  return {std::move(order), std::move(begins)};
}

TEST(ChunkMap, MayHaveChunksOfDifferentSizes) {
  const ChunkMap map({3, 1, 0, 2, 4}, {0, 1, 4});
  EXPECT_EQ(map.chunks(), 3U);
  EXPECT_EQ(map.chunk_samples(), 3U);
  EXPECT_EQ(map.chunk_of(3), 0U);
  EXPECT_EQ(map.chunk_of(2), 1U);
  EXPECT_EQ(map.slot_of(2), 2U);
  EXPECT_EQ(map.chunk_of(4), 2U);
  EXPECT_EQ(map.slot_of(4), 0U);
  EXPECT_EQ(map.members(1).size(), 3U);
}

TEST(ChunkPart, PartsOfAllRanksAreAllSamplesInTheOrderOfTheirChunks) {
  const ChunkMap map = uneven(1003, 20, 5);
  for (const uint32_t ranks : {1U, 2U, 7U}) {
    std::set<SampleId> seen;
    uint32_t chunks = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const ChunkPart part(map, rank, ranks);
      EXPECT_NEAR(part.samples(), 1003.0 / ranks, 1);
      const ChunkMap own = part.map();
      ASSERT_EQ(own.samples(), part.samples());
      chunks += own.chunks();
      for (uint32_t chunk = 0; chunk < own.chunks(); ++chunk) {
        for (const SampleId number : own.members(chunk)) {
          const SampleId sample = part.sample(number);
          EXPECT_TRUE(seen.insert(sample).second);
          EXPECT_TRUE(part.contains(sample));
          EXPECT_EQ(part.number_of(sample), number);
          EXPECT_EQ(map.chunk_of(sample), map.chunk_of(part.sample(own.members(chunk).front())));
        }
      }
    }
    EXPECT_EQ(seen.size(), 1003U);
    EXPECT_LE(chunks, map.chunks() + ranks - 1);
  }
}

class Supplies : public testing::TestWithParam<ChunkSystemKind> {};

// One epoch as a reader sees it: what chunks bring is in memory until it is delivered.
class Reader {
 public:
  explicit Reader(ChunkSupply* supply) : supply_(supply) {}

  // Some have left memory though nothing said so.
  void lose(uint32_t one_in, uint64_t seed) {
    Random random(mixed(seed));
    std::erase_if(memory_, [&](SampleId) { return random.below(one_in) == 0; });
  }

  void epoch(uint64_t seed, uint32_t requests = kSamples) {
    std::vector<SampleId> order(kSamples);
    std::iota(order.begin(), order.end(), 0);
    Random(mixed(seed)).shuffle(&order);
    supply_->begin_epoch([this](SampleId sample) { return !memory_.contains(sample); });
    std::vector<bool> delivered(kSamples);
    for (const SampleId requested : std::span(order).first(requests)) {
      const ChunkSupply::Delivery delivery = supply_->request(requested);
      ASSERT_LT(delivery.sample, kSamples);
      EXPECT_FALSE(delivered[delivery.sample]) << "twice in an epoch";
      delivered[delivery.sample] = true;
      EXPECT_EQ(delivery.in_memory, memory_.contains(delivery.sample));
      if (!delivery.loaded.empty()) {
        ++loads;
        EXPECT_EQ(delivery.loaded.front(), delivery.sample);
        for (const SampleId sample : delivery.loaded) {
          EXPECT_TRUE(memory_.insert(sample).second) << "it is in memory already";
        }
      }
      if (!delivery.held) memory_.erase(delivery.sample);
      most = std::max(most, memory_.size());
    }
  }

  uint64_t loads = 0;
  size_t most = 0;  // in memory

 private:
  ChunkSupply* const supply_;
  std::set<SampleId> memory_;
};

TEST_P(Supplies, DeliverEachSampleOnceAnEpochAndNeedNoMoreThanTheirMemory) {
  for (const uint64_t percent : {2, 25, 60, 100}) {
    SCOPED_TRACE(percent);
    const uint64_t capacity = uint64_t{kSamples} * kBytes * percent / 100;
    ChunkSupply supply(GetParam(), uneven(kSamples, 20, percent),
                       std::vector<uint32_t>(kSamples, kBytes), capacity, 1);
    Reader reader(&supply);
    for (uint64_t epoch = 0; epoch < 4; ++epoch) reader.epoch(epoch);
    EXPECT_LE(reader.most * kBytes, capacity + 40 * kBytes);
    EXPECT_EQ(supply.counts().deliveries, 4 * kSamples);
    EXPECT_EQ(supply.counts().loads, reader.loads);
    EXPECT_EQ(supply.counts().alone, 0U);
    if (percent == 100) {
      EXPECT_EQ(reader.loads, supply.chunks()) << "all of them stay";
    }
    if (GetParam() == ChunkSystemKind::kPool) {
      EXPECT_LE(reader.loads, 4 * supply.chunks()) << "a chunk was read twice in an epoch";
    }
  }
}

TEST_P(Supplies, GoOnAfterAnEpochThatWasLeft) {
  ChunkSupply supply(GetParam(), uneven(kSamples, 20, 1), std::vector<uint32_t>(kSamples, kBytes),
                     kSamples / 4 * kBytes, 1);
  Reader reader(&supply);
  for (uint64_t epoch = 0; epoch < 6; ++epoch) {
    reader.epoch(epoch, epoch % 2 == 0 ? 700 : kSamples);
  }
  EXPECT_EQ(supply.counts().gone, 0U) << "what was not read yet was taken for read";
}

TEST_P(Supplies, ReadTheChunksOfWhatIsNotInMemoryAfterAll) {
  ChunkSupply supply(GetParam(), uneven(kSamples, 20, 1), std::vector<uint32_t>(kSamples, kBytes),
                     kSamples / 2 * kBytes, 1);
  Reader reader(&supply);
  for (uint64_t epoch = 0; epoch < 6; ++epoch) {
    reader.epoch(epoch, epoch == 2 ? 700 : kSamples);
    reader.lose(3, epoch);
  }
  EXPECT_EQ(supply.counts().alone, 0U);
  EXPECT_GT(supply.counts().gone, 0U);
  if (GetParam() == ChunkSystemKind::kPool) {
    EXPECT_LE(reader.loads, 6 * supply.chunks()) << "a chunk was read twice in an epoch";
  }
}

TEST_P(Supplies, DeliverASampleThatIsRequestedTwiceAgainAlone) {
  ChunkSupply supply(GetParam(), ChunkMap(8, 4, 1), std::vector<uint32_t>(8, kBytes), 4 * kBytes,
                     1);
  supply.begin_epoch();
  for (SampleId sample = 0; sample < 8; ++sample) supply.request(sample);
  const ChunkSupply::Delivery again = supply.request(3);
  EXPECT_EQ(again.sample, 3U);
  EXPECT_TRUE(again.loaded.empty());
  EXPECT_EQ(supply.counts().alone, again.in_memory ? 0U : 1U);
}

INSTANTIATE_TEST_SUITE_P(Both, Supplies,
                         testing::Values(ChunkSystemKind::kBrand, ChunkSystemKind::kPool),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

// Brand loads a chunk 7.2 times an epoch at 25 % of the samples in memory, the pool once.
TEST(ChunkSupply, LoadsOfAnEpochAreThoseOfThePapersSizes) {
  constexpr uint32_t kMany = 64 * 2000;
  for (const ChunkSystemKind kind : {ChunkSystemKind::kBrand, ChunkSystemKind::kPool}) {
    ChunkSupply supply(kind, ChunkMap(kMany, kChunkSamples, 1),
                       std::vector<uint32_t>(kMany, kBytes), uint64_t{kMany} / 4 * kBytes, 1);
    std::vector<SampleId> order(kMany);
    std::iota(order.begin(), order.end(), 0);
    Random random(mixed(2));
    uint64_t before = 0;
    for (int epoch = 0; epoch < 3; ++epoch) {
      before = supply.counts().loads;
      random.shuffle(&order);
      supply.begin_epoch();
      for (const SampleId sample : order) supply.request(sample);
    }
    const double loads =
        static_cast<double>(supply.counts().loads - before) / static_cast<double>(supply.chunks());
    if (kind == ChunkSystemKind::kBrand) {
      EXPECT_NEAR(loads, 7.2, 0.2);
    } else {
      EXPECT_LE(loads, 1.0);
      EXPECT_GE(loads, 0.74);  // a quarter is still there
    }
  }
}

}  // namespace
}  // namespace sluice::policy
