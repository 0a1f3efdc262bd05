// Which chunks samples are, by what was read for some of them.
#include "policy/samples/chunk_guess.h"

#include <gtest/gtest.h>

namespace sluice::policy {
namespace {

constexpr FileId kFile{5};
constexpr uint64_t kSamples = 200;

RowChunks dataset(uint64_t from, uint32_t length, uint64_t rows_each = 1) {
  RowChunks out{rows_each, {}};
  for (uint64_t i = 0; i * rows_each < kSamples; ++i) {
    out.chunks.push_back({from + i * 2 * length, length});
  }
  return out;
}

// What was read for some samples of these datasets, with nodes of an index.
std::vector<Observation> observed(const std::vector<RowChunks>& datasets, size_t count) {
  std::vector<Observation> out;
  for (uint64_t i = 0; i < count; ++i) {
    Observation one{i * 37 % kSamples, {{64, 512, kFile}}};
    for (const RowChunks& rows : datasets) {
      const RowChunks::Chunk& chunk = rows.chunks[one.index / rows.rows_each];
      one.parts.push_back({chunk.offset, chunk.length, kFile});
    }
    out.push_back(one);
  }
  return out;
}

const RowChunks kImages = dataset(100'000, 5000), kLabels = dataset(10'000'000, 16, 10),
                kOthers = dataset(20'000'000, 700);

TEST(ChunkGuess, TheDatasetThatWasRead) {
  const std::vector<RowChunks> all{kOthers, kImages, kLabels};
  const Guessing guessing = guess_chunks(all, kFile, kSamples, observed({kImages}, 20));
  ASSERT_EQ(guessing.state, Guessing::State::kGuessed);
  for (uint64_t i = 0; i < kSamples; ++i) {
    const auto parts = guessing.guess->parts(i);
    ASSERT_EQ(parts.size(), 1);
    EXPECT_EQ(parts.front(), (Extent{kImages.chunks[i].offset, 5000, kFile}));
  }
  EXPECT_TRUE(guessing.guess->agrees(observed({kImages}, 60).back()));
  EXPECT_FALSE(guessing.guess->agrees(observed({kOthers}, 60).back()));
}

TEST(ChunkGuess, SeveralDatasets) {
  const std::vector<RowChunks> all{kOthers, kImages, kLabels};
  const Guessing guessing = guess_chunks(all, kFile, kSamples, observed({kImages, kLabels}, 20));
  ASSERT_EQ(guessing.state, Guessing::State::kGuessed);
  const auto parts = guessing.guess->parts(15);
  ASSERT_EQ(parts.size(), 2);
  EXPECT_EQ(parts[1], (Extent{kLabels.chunks[1].offset, 16, kFile}));
}

TEST(ChunkGuess, FewOrOthersGiveNone) {
  const std::vector<RowChunks> all{kImages};
  EXPECT_EQ(guess_chunks(all, kFile, kSamples, observed({kImages}, kEnoughSeen - 1)).state,
            Guessing::State::kWait);
  EXPECT_EQ(guess_chunks(all, kFile, kSamples, observed({kOthers}, 20)).state,
            Guessing::State::kNone);
  EXPECT_EQ(guess_chunks({}, kFile, kSamples, observed({kImages}, 20)).state,
            Guessing::State::kNone);
  auto mixed = observed({kImages}, 20);
  mixed.back() = {199, observed({kOthers}, 1).front().parts};
  EXPECT_EQ(guess_chunks(all, kFile, kSamples, mixed).state, Guessing::State::kNone);
}

TEST(ChunkGuess, ARowThatIsMissing) {
  RowChunks some = kImages;
  some.chunks[7] = {};
  some.chunks.pop_back();
  const Guessing guessing =
      guess_chunks(std::vector{some}, kFile, kSamples, observed({kImages}, 5));
  EXPECT_EQ(guessing.state, Guessing::State::kWait);
  std::vector<Observation> seen;
  for (const Observation& one : observed({kImages}, 30)) {
    if (one.index != 7 && one.index != kSamples - 1) seen.push_back(one);
  }
  const Guessing most = guess_chunks(std::vector{some}, kFile, kSamples, seen);
  ASSERT_EQ(most.state, Guessing::State::kGuessed);
  EXPECT_TRUE(most.guess->parts(7).empty());
  EXPECT_TRUE(most.guess->parts(kSamples - 1).empty());
}

}  // namespace
}  // namespace sluice::policy
