// Records of a chunk, which are read together as soon as one of them is wanted, within a budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "tests/unit/records_data.h"

namespace sluice::test {
namespace {

constexpr uint32_t kCount = 2048, kEach = 64, kTogether = 4;  // records, of a chunk, chunks mixed
constexpr uint64_t kMemory = 6 << 20;

class Together : public Records {
 protected:
  // As a pool delivers them: those of a few chunks, mixed.
  std::vector<uint32_t> mixed_order() {
    std::vector<uint32_t> chunks(kCount / kEach), order;
    for (uint32_t chunk = 0; chunk < chunks.size(); ++chunk) chunks[chunk] = chunk;
    std::shuffle(chunks.begin(), chunks.end(), draw_);
    for (size_t at = 0; at < chunks.size(); at += kTogether) {
      std::vector<uint32_t> some;
      for (size_t i = at; i < at + kTogether; ++i) {
        for (uint32_t k = 0; k < kEach; ++k) some.push_back(chunks[i] * kEach + k);
      }
      std::shuffle(some.begin(), some.end(), draw_);
      order.insert(order.end(), some.begin(), some.end());
    }
    return order;
  }
  // As a pool of so many chunks does: the next comes when there is room for it.
  std::vector<uint32_t> pooled_order(uint32_t chunks) {
    std::vector<uint32_t> next(kCount / kEach), pool, order;
    for (uint32_t chunk = 0; chunk < next.size(); ++chunk) next[chunk] = chunk;
    std::shuffle(next.begin(), next.end(), draw_);
    while (order.size() < kCount) {
      while (!next.empty() && pool.size() + kEach <= chunks * kEach) {
        for (uint32_t k = 0; k < kEach; ++k) pool.push_back(next.back() * kEach + k);
        next.pop_back();
      }
      std::swap(pool[draw_() % pool.size()], pool.back());
      order.push_back(pool.back());
      pool.pop_back();
    }
    return order;
  }
  void decide() {
    scheduler_.store().read_apart(SessionId{1}, set_);
    for (uint32_t first = 0; first < kCount; first += kEach) {
      std::vector<uint32_t> chunk;
      for (uint32_t k = 0; k < kEach; ++k) chunk.push_back(first + k);
      scheduler_.store().read_together(SessionId{1}, set_, chunk);
    }
  }
  void read_all(const std::vector<uint32_t>& order) {
    for (const uint32_t index : order) {
      pump();
      read(index);
    }
  }
  std::mt19937 draw_{7};
};

void expect_few(const std::vector<Range>& reads, uint64_t record) {
  const uint64_t chunk = kEach * record;
  const uint64_t pieces = (chunk - 1) / (1 << 20) + 1;
  // Neighbours of a chunk may have brought the page that it shares with them.
  EXPECT_LE(reads.size(), kCount / kEach * (pieces + 1));
}

TEST_F(Together, AChunkIsReadWholeWhereRecordsSharePages) {
  constexpr uint64_t kRecord = 6000;
  const auto order = mixed_order();
  make(kMemory, kRecord, kCount, order);
  decide();
  read_all(order);
  EXPECT_EQ(missed_, 0U);
  expect_few(reads_, kRecord);
  EXPECT_LE(bytes_read(), size_ + kCount / kEach * 2 * 4096) << "nothing was read twice";
  EXPECT_EQ(scheduler_.accounts().outstanding(), 0U) << "all of it was passed";
  reads_.clear();
  const auto next = mixed_order();
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 1, 0, next));
  decide();
  read_all(next);
  EXPECT_EQ(missed_, 0U);
  expect_few(reads_, kRecord);
}

TEST_F(Together, AsManyAreReadAsThereIsRoomFor) {
  constexpr uint64_t kRecord = 100'000;  // 64 of them are more than the memory
  const auto order = mixed_order();
  make(kMemory, kRecord, kCount, order);
  decide();
  read_all({order.begin(), order.begin() + 256});
  EXPECT_EQ(missed_, 0U);
  EXPECT_LE(world_.cache[FileId{1}].bytes(), 2 * kMemory);
}

TEST_F(Together, WhatWaitsTakesMemoryFromWhatIsRetained) {
  constexpr uint64_t kRecord = 6000;
  constexpr uint32_t kMany = kMemory / 2 / (kEach * kRecord);  // chunks in half of the memory
  const auto order = pooled_order(kMany);
  make(kMemory, kRecord, kCount, order);
  decide();
  read_all(order);
  const auto next = pooled_order(kMany);
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 1, 0, next));
  decide();
  // A pool that begins empty is filled faster than what was retained meanwhile can leave.
  read_all({next.begin(), next.begin() + kMany * kEach});
  uint64_t most = 0;
  for (const uint32_t index : std::span(next).subspan(kMany * kEach)) {
    now_ += 100'000'000;  // what was read is dropped meanwhile
    read_all({index});
    most = std::max(most, world_.cache[FileId{1}].bytes());
  }
  EXPECT_LE(most, kMemory);
  EXPECT_EQ(missed_, 0U);
}

// A worker was faster than the plan: its record is not read again with its chunk.
TEST_F(Together, WhatWasReadIsNotReadAgain) {
  constexpr uint64_t kRecord = 8192;
  const auto order = mixed_order();
  make(kMemory, kRecord, kCount, order);
  decide();
  const uint32_t ahead = order[5];
  read(ahead);
  world_.cache[FileId{1}].remove({ahead * kRecord, (ahead + 1) * kRecord});
  pump();
  for (const Range& range : reads_) {
    EXPECT_FALSE(range.begin <= ahead * kRecord && range.end >= (ahead + 1) * kRecord)
        << range.begin << " " << range.end;
  }
}

}  // namespace
}  // namespace sluice::test
