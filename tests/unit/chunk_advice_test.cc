// How many samples a chunk should have, by what the storage was measured to give.
#include "cli/chunk_advice.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

BenchFiles files(uint64_t bytes, size_t count) {
  BenchFiles all;
  for (size_t at = 0; at < count; ++at) all.small.push_back({"", bytes});
  return all;
}

// So many requests a second of `bytes` at any depth.
void set(std::array<BenchRate, kBenchDepths.size()>* rates, uint64_t requests, uint64_t bytes) {
  for (BenchRate& rate : *rates) rate = {requests, requests * bytes, 1};
}

TEST(ChunkAdvice, AChunkIsAsLargeAsARequestCosts) {
  BenchResult result;
  set(&result.small, 2000, 10'000);    // 20 MB/s
  set(&result.large, 500, 1'000'000);  // 500 MB/s
  const ChunkAdvice advice = advise(files(10'000, 100), result);
  EXPECT_EQ(advice.mean_bytes, 10'000U);
  EXPECT_EQ(advice.files_per_second, 2000);
  EXPECT_EQ(advice.samples, 256U);  // 2.25 MB: 0.5 ms for the request, 4.5 for the bytes
  EXPECT_NEAR(advice.samples_per_second, 256 / (0.0005 + 256 * 10'000 / 500e6), 1);
}

TEST(ChunkAdvice, AtLeast1MibAndAtMost32) {
  BenchResult result;
  set(&result.small, 50'000, 4000);
  set(&result.large, 400, 1'000'000);
  EXPECT_EQ(advise(files(4000, 10), result).samples, 512U);
  set(&result.small, 10, 100'000);
  EXPECT_EQ(advise(files(100'000, 10), result).samples, 512U);
}

TEST(ChunkAdvice, NoneWhereFilesComeAsFastByThemselves) {
  BenchResult result;
  set(&result.small, 2000, 200'000);
  set(&result.large, 410, 1'000'000);
  EXPECT_EQ(advise(files(200'000, 10), result).samples, 0U);
}

TEST(ChunkAdvice, NothingWithoutAMeasurement) {
  EXPECT_EQ(advise({}, {}).samples, 0U);
  BenchResult result;
  set(&result.large, 100, 1'000'000);
  EXPECT_EQ(advise(files(10'000, 10), result).samples, 0U);
  EXPECT_EQ(advise(files(0, 10), result).files_per_second, 0);
}

}  // namespace
}  // namespace sluice::cli
