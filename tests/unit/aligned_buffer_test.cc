// Memory for O_DIRECT, and what of it is kept for the next read.
#include "optimizer/chunks/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::optimizer {
namespace {

constexpr size_t kLarge = AlignedBuffer::kLarge, kBlock = AlignedBuffer::kBlock;
constexpr size_t kMost = AlignedBuffer::kMostKept;

std::byte* address_of_one(size_t bytes) {
  const AlignedBuffer buffer(bytes);
  memset(buffer.data(), 1, buffer.size());
  return buffer.data();
}

TEST(AlignedBuffer, BeginsAtABlockAndIsWholeBlocks) {
  const AlignedBuffer::Keep keep;
  for (const size_t bytes : {size_t{1}, kBlock, kBlock + 1, kLarge, 5 * kLarge + 7, 2 * kMost}) {
    AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBlock, 0U);
    EXPECT_EQ(buffer.size(), (bytes + kBlock - 1) / kBlock * kBlock);
    memset(buffer.data(), 1, buffer.size());
    const AlignedBuffer other = std::move(buffer);
    EXPECT_GE(other.size(), bytes);
  }
  EXPECT_EQ(AlignedBuffer().size(), 0U);
  EXPECT_EQ(AlignedBuffer(SIZE_MAX / 4).size(), 0U) << "so much cannot be had";
}

// Chunks differ by a few samples: each had a buffer of its own that no other could use.
TEST(AlignedBuffer, ALargeOneIsUsedAgainForAboutAsMuch) {
  const AlignedBuffer::Keep keep;
  std::byte* const was = address_of_one(7 * kLarge);
  const AlignedBuffer much_more(9 * kLarge);
  EXPECT_NE(much_more.data(), was);
  const AlignedBuffer more(8 * kLarge);
  EXPECT_EQ(more.data(), was);
  EXPECT_EQ(more.size(), 8 * kLarge);
  memset(more.data(), 1, more.size());
  const AlignedBuffer another(7 * kLarge);
  EXPECT_NE(another.data(), was) << "it is in use";
}

TEST(AlignedBuffer, MuchLessDoesNotTakeALargeOne) {
  const AlignedBuffer::Keep keep;
  address_of_one(kMost / 2);
  const AlignedBuffer less(kLarge);
  EXPECT_EQ(AlignedBuffer::kept_bytes(), kMost / 2);
}

TEST(AlignedBuffer, KeepsThoseThatWereUsedLast) {
  const AlignedBuffer::Keep keep;
  {
    std::vector<AlignedBuffer> many;
    for (size_t bytes = 0; bytes < 2 * kMost; bytes += 4 * kLarge) many.emplace_back(4 * kLarge);
    many.emplace_back(kBlock);
    EXPECT_EQ(AlignedBuffer::kept_bytes(), 0U);
  }
  EXPECT_EQ(AlignedBuffer::kept_bytes(), kMost);
  address_of_one(kMost / 2);
  EXPECT_EQ(AlignedBuffer::kept_bytes(), kMost);
  const AlignedBuffer half(kMost / 2);
  EXPECT_EQ(AlignedBuffer::kept_bytes(), kMost / 2);
}

TEST(AlignedBuffer, NothingIsKeptWhereNoneIsUsedAgain) {
  address_of_one(kLarge);
  EXPECT_EQ(AlignedBuffer::kept_bytes(), 0U);
  auto keep = std::make_unique<AlignedBuffer::Keep>();
  auto second = std::make_unique<AlignedBuffer::Keep>();
  AlignedBuffer outlives(kLarge);
  address_of_one(kLarge);
  keep.reset();
  EXPECT_NE(AlignedBuffer::kept_bytes(), 0U);
  second.reset();
  EXPECT_EQ(AlignedBuffer::kept_bytes(), 0U);
  outlives = {};
  EXPECT_EQ(AlignedBuffer::kept_bytes(), 0U);
}

}  // namespace
}  // namespace sluice::optimizer
