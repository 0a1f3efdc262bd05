// The chunks of records: by where they lie.
#include "policy/chunks/record_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::policy {
namespace {

constexpr uint32_t kPageBytes = 4096;
constexpr FileId kFirst{1}, kSecond{2};

TEST(RecordChunks, HaveThoseThatLieTogether) {
  SampleSet set(10);
  for (uint64_t sample = 0; sample < 10; ++sample) {  // in the file the other way round
    set.learn(sample, {Extent{(9 - sample) * kPageBytes, 100, kFirst}});
  }
  const auto chunks = record_chunks(set, 4);
  ASSERT_TRUE(chunks);
  EXPECT_EQ(chunks->map.chunks(), 3U);
  EXPECT_TRUE(std::ranges::equal(chunks->map.members(0), std::vector<SampleId>{9, 8, 7, 6}));
  EXPECT_TRUE(std::ranges::equal(chunks->map.members(2), std::vector<SampleId>{1, 0}));
  EXPECT_EQ(chunks->bytes, std::vector<uint32_t>(10, kPageBytes)) << "memory is of whole pages";
}

TEST(RecordChunks, HaveSamplesOfOneFile) {
  SampleSet set(6);
  for (uint64_t sample = 0; sample < 6; ++sample) {
    set.learn(sample, {Extent{sample * kPageBytes, 100, sample < 3 ? kFirst : kSecond}});
  }
  const auto chunks = record_chunks(set, 4);
  ASSERT_TRUE(chunks);
  EXPECT_EQ(chunks->map.chunks(), 2U);
  EXPECT_EQ(chunks->map.members(0).size(), 3U);
}

// LMDB's records share a leaf page, and lie elsewhere.
TEST(RecordChunks, GoByTheLargestPart) {
  SampleSet set(4);
  for (uint64_t sample = 0; sample < 4; ++sample) {
    set.learn(sample, {Extent{0, kPageBytes, kFirst},
                       Extent{(10 - 2 * sample) * kPageBytes, 2 * kPageBytes, kFirst}});
  }
  const auto chunks = record_chunks(set, 2);
  ASSERT_TRUE(chunks);
  EXPECT_TRUE(std::ranges::equal(chunks->map.members(0), std::vector<SampleId>{3, 2}));
}

TEST(RecordChunks, AreNoneOfFilesNorOfWhatIsUnknown) {
  SampleSet files(2);
  files.learn(0, {whole_file(SampleFileId{1})});
  files.learn(1, {whole_file(SampleFileId{2})});
  EXPECT_FALSE(record_chunks(files, 64));
  SampleSet unknown(2);
  unknown.learn(0, {Extent{0, 100, kFirst}});
  EXPECT_FALSE(record_chunks(unknown, 64));
  EXPECT_FALSE(record_chunks(SampleSet(0), 64));
}

}  // namespace
}  // namespace sluice::policy
