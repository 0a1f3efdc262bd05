// Runs of neighbouring records, read with one request where a request costs more than its bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include "tests/unit/records_data.h"

namespace sluice::test {
namespace {

using policy::FileId;
using policy::PlannedRead;

constexpr uint64_t kRecord = 4096;

// Storage that answers one request at a time, each in half a millisecond and its bytes at 125 MB/s.
class Runs : public Records {
 protected:
  void answer() {
    if (queue_.empty()) return;
    const PlannedRead read = queue_.front();
    queue_.pop_front();
    now_ += 500'000 + read.range.length() * 8;
    ++requests_;
    world_.cache[FileId{1}].add(read.range);
    reads_.push_back(read.range);
    scheduler_.on_done(read.token, read.range.length(), 0, now_);
  }
  void plan() {
    std::vector<PlannedRead> reads;
    scheduler_.plan(now_, &reads);
    for (const PlannedRead& read : reads) {
      if (!world_.cache[FileId{1}].contains(read.range)) {
        queue_.push_back(read);
        continue;
      }
      // Of what is in memory nothing is asked of the storage.
      reads_.push_back(read.range);
      scheduler_.on_done(read.token, read.range.length(), 0, now_ += 5'000);
    }
    std::vector<policy::PlannedDrop> drops;
    scheduler_.drops(now_, &drops);
    for (const policy::PlannedDrop& drop : drops) {
      dropped_ += world_.cache[FileId{1}].remove(drop.range);
      scheduler_.on_dropped(drop, world_.cache[FileId{1}].covered(drop.range), now_);
    }
  }
  // The job waits until each is there.
  void epoch(const std::vector<uint32_t>& order) {
    for (const uint32_t index : order) {
      const Range pages{index * kRecord, (index + 1) * kRecord};
      for (plan(); !queue_.empty() && !world_.cache[FileId{1}].contains(pages); plan()) answer();
      read(index);
    }
    while (!queue_.empty()) answer();
  }
  static std::vector<uint32_t> shuffled(uint32_t count, uint32_t seed) {
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    return order;
  }

  std::deque<PlannedRead> queue_;
  uint64_t requests_ = 0;  // to the storage
};

TEST_F(Runs, OfAFileThatStaysAreReadWithTheRecordsBesideThem) {
  const std::vector<uint32_t> order = shuffled(20000, 1);
  make(0, kRecord, 20000, order);
  epoch(order);
  EXPECT_EQ(missed_, 0U);
  EXPECT_LT(reads_.size(), 20000U / 8) << "requests";
  EXPECT_LT(bytes_read(), size_ + size_ / 20) << "nothing twice";
  EXPECT_EQ(metric(SessionMetric::sample_hits), 20000U);
  EXPECT_GT(metric(SessionMetric::packages_read), 100U);
  EXPECT_LE(metric(SessionMetric::package_used_bytes), metric(SessionMetric::package_bytes));
  EXPECT_GT(metric(SessionMetric::package_used_bytes),
            metric(SessionMetric::package_bytes) / 10 * 9);
  EXPECT_EQ(scheduler_.accounts().outstanding(), 0U);
}

// An epoch that reads a twentieth of the file would read the rest for nothing.
TEST_F(Runs, AreNotMadeForAnEpochThatNeedsLittleOfThem) {
  std::vector<uint32_t> order = shuffled(60000, 1);
  order.resize(1500);
  make(0, kRecord, 60000, order);
  epoch(order);
  EXPECT_EQ(missed_, 0U);
  EXPECT_LT(bytes_read(), 6 * 1500 * kRecord);
}

// Of another user's file the kernel does not report what is in memory: what was read is believed to
// be there, until a read shows that it is not.
TEST_F(Runs, OfAFileOfWhichItIsUnknownWhatIsInMemory) {
  const uint32_t count = 20000;
  make(0, kRecord, count, shuffled(count, 0));
  world_.reports_cache = false;
  epoch(shuffled(count, 0));
  EXPECT_EQ(missed_, 0U);
  EXPECT_LT(requests_, count / 8);
  EXPECT_LT(bytes_read(), 3 * size_) << "each run once, and each record";
  reads_.clear();
  requests_ = 0;
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 1, 0, shuffled(count, 1)));
  epoch(shuffled(count, 1));
  EXPECT_EQ(requests_, 0U) << "all of it is there";
  EXPECT_LT(bytes_read(), 2 * size_);
  world_.cache[FileId{1}] = {};  // another process needed the memory
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 2, 0, shuffled(count, 2)));
  epoch(shuffled(count, 2));
  EXPECT_EQ(missed_, 0U);
  EXPECT_LT(requests_, count / 4);
}

// Each of many files fits into memory, and all of them do not.
TEST_F(Runs, OfManyFilesThatDoNotFitTogetherReadNoMoreThanTheyGather) {
  const uint32_t count = 20000, files = 8;
  const std::vector<uint32_t> order = shuffled(count, 1);
  make(0, kRecord, count, order);
  scheduler_.accounts().set_budget(20 * kMiB);
  const uint64_t each = size_ / files;
  scheduler_.resize_file(FileId{1}, each);
  for (uint32_t i = 2; i <= files; ++i) {
    const FileId file{i};
    scheduler_.add_file(file, each, 9);
    scheduler_.file_usable(file, true);
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t at = i * kRecord;
    place(i, {at % each, kRecord, FileId{static_cast<uint32_t>(1 + at / each)}});
  }
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 0, 0, order));
  for (const uint32_t index : order) {
    const Extent part = book_.parts(set_, index)[0];
    const Range pages{part.offset, part.offset + kRecord};
    for (plan(); !queue_.empty() && !world_.cache[part.file.followed()].contains(pages); plan()) {
      const PlannedRead read = queue_.front();
      world_.cache[read.file].add(read.range);
      answer();
      // Memory is short: half of what was not read yet is gone.
      if (reads_.size() % 64 == 0) {
        const FileId file{static_cast<uint32_t>(1 + reads_.size() / 64 % files)};
        world_.cache[file].remove({0, each / 2});
      }
    }
    const auto parts = book_.begin(SessionId{1}, 5, set_, index);
    scheduler_.samples().on_sample_begin(SessionId{1}, parts);
    scheduler_.samples().on_sample_end(SessionId{1}, parts);
    book_.end(5, set_, index);
    scheduler_.retention().on_read(SessionId{1}, set_, index, parts, now_);
  }
  EXPECT_LT(bytes_read(), size_ + size_ / 3);
}

// Requests that cost nothing are made for each record.
TEST_F(Runs, AreNotMadeWhereRequestsCostNothing) {
  const std::vector<uint32_t> order = scattered(5000);
  make(0, kRecord, 5000, order);
  for (const uint32_t index : order) {
    pump();
    read(index);
  }
  EXPECT_EQ(bytes_read(), size_);
}

TEST_F(Runs, OfAFileThatDoesNotFitAreThoseNeededSoon) {
  const uint32_t count = 20000;
  make(16 * kMiB, kRecord, count, shuffled(count, 0));
  epoch(shuffled(count, 0));
  for (uint32_t number = 1; number <= 2; ++number) {
    reads_.clear();
    const std::vector<uint32_t> order = shuffled(count, number);
    ASSERT_TRUE(book_.publish(SessionId{1}, set_, number, 0, order));
    epoch(order);
  }
  EXPECT_EQ(missed_, 0U);
  EXPECT_LT(reads_.size(), count * 6 / 10) << "three quarters are read";
  EXPECT_LT(bytes_read(), 3 * size_);
  EXPECT_GT(dropped_, 0U);
  EXPECT_LT(world_.cache[FileId{1}].bytes(), 20 * kMiB) << "what lay between is evicted as well";
  // Those that stay lie together, where they cut no run to pieces.
  EXPECT_GT(world_.cache[FileId{1}].covered({0, 8 * kMiB}), 7 * kMiB);
}

class WaitingRuns : public Runs {
 protected:
  // Some records wait for others, and more are on their way.
  void SetUp() override {
    const std::vector<uint32_t> order = shuffled(20000, 0);
    make(16 * kMiB, kRecord, 20000, order);
    for (size_t i = 0; i < 3000; ++i) {
      const Range pages{order[i] * kRecord, (order[i] + 1) * kRecord};
      for (plan(); !world_.cache[FileId{1}].contains(pages); plan()) answer();
      read(order[i]);
    }
    plan();
    ASSERT_GT(scheduler_.queue().waiting_bytes(9), 100 * kRecord);
  }
};

TEST_F(WaitingRuns, ThatAreNotWantedAnyMoreAreNotRead) {
  const uint64_t flying = queue_.size();
  const size_t before = reads_.size();
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 0, 0, std::vector<uint32_t>{}));
  while (!queue_.empty()) {
    answer();
    plan();
  }
  EXPECT_EQ(reads_.size(), before + flying);
  EXPECT_EQ(scheduler_.queue().waiting_bytes(9), 0U);
}

// It waited at its old place, was taken for read there, and never came.
TEST_F(WaitingRuns, OfAnOrderThatWasPublishedAnewAreRead) {
  std::vector<uint32_t> order = shuffled(20000, 0);
  order.erase(order.begin(), order.begin() + 3000);
  std::reverse(order.begin(), order.begin() + 500);
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 0, 3000, order));
  order.resize(500);
  for (int i = 0; i < 2000; ++i) {
    plan();
    answer();
  }
  for (const uint32_t index : order) {
    EXPECT_TRUE(world_.cache[FileId{1}].contains({index * kRecord, (index + 1) * kRecord}))
        << index;
  }
}

TEST_F(WaitingRuns, OfAMountThatIsTurnedOffHoldNoBudget) {
  scheduler_.file_usable(FileId{1}, false);
  EXPECT_EQ(scheduler_.queue().waiting_bytes(9), 0U);
}

TEST_F(WaitingRuns, OfASessionThatLeavesCountNoMore) {
  scheduler_.remove_session(SessionId{1}, now_);
  book_.leave(SessionId{1});
  while (!queue_.empty()) answer();
  EXPECT_EQ(scheduler_.accounts().outstanding(), 0U);
  EXPECT_EQ(scheduler_.queue().waiting_bytes(9), 0U);
}

TEST_F(WaitingRuns, OfAFileThatIsGoneCountNoMore) {
  scheduler_.remove_file(FileId{1});
  EXPECT_EQ(scheduler_.queue().waiting_bytes(9), 0U);
  while (!queue_.empty()) answer();
  EXPECT_EQ(scheduler_.accounts().outstanding(), 0U);
}

TEST_F(WaitingRuns, OfAFileThatGrewShorterDoNotReachBeyondIt) {
  scheduler_.resize_file(FileId{1}, size_ / 2);
  const size_t flying = queue_.size();
  for (size_t i = 0; i < flying; ++i) answer();
  reads_.clear();
  for (plan(); !queue_.empty(); plan()) answer();
  for (const Range& range : reads_) EXPECT_LE(range.end, size_ / 2);
}

// Its reader has come before it was read, and reads it itself.
TEST_F(WaitingRuns, OfSamplesThatWereBegunAreNotRead) {
  const std::vector<uint32_t> order = shuffled(20000, 0);
  for (size_t i = 3000; i < 20000; ++i) read(order[i]);
  const uint64_t flying = queue_.size();
  const size_t before = reads_.size();
  while (!queue_.empty()) {
    answer();
    plan();
  }
  EXPECT_EQ(reads_.size(), before + flying);
}

}  // namespace
}  // namespace sluice::test
