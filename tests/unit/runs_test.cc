// Runs of neighbouring records, read with one request where a request costs more than its bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include "policy/planner/gatherer.h"
#include "policy/storage/request_cost.h"
#include "tests/unit/records_data.h"

namespace sluice::test {
namespace {

using optimizer::Gatherer;
using optimizer::PlannedRead;
using optimizer::RequestCost;
using optimizer::WaitingRead;
using optimizer::WantedExtent;

constexpr uint64_t kRecord = 4096;

// Slots of requests of these sizes, one size a slot.
void busy(RequestCost* cost, double request_ns, double byte_ns, std::vector<uint64_t> sizes) {
  for (int slot = 0; slot < 200; ++slot) {
    const uint64_t size = sizes[static_cast<size_t>(slot) % sizes.size()];
    const double each = request_ns + byte_ns * static_cast<double>(size);
    const auto count = std::max<uint64_t>(40, static_cast<uint64_t>(60e6 / each));
    cost->add(count, count * size, static_cast<uint64_t>(static_cast<double>(count) * each));
  }
}

TEST(RequestCost, IsToldFromRequestsOfTwoSizes) {
  for (const double request_ns : {20e3, 500e3, 8e6}) {
    for (const double byte_ns : {1.0, 8.0}) {
      RequestCost cost;
      busy(&cost, request_ns, byte_ns, {128 << 10, 32 << 10});
      EXPECT_NEAR(cost.request_ns(), request_ns, request_ns / 6);
      const auto worth = static_cast<double>(cost.worth());
      EXPECT_NEAR(worth, std::min(request_ns / byte_ns, 4.0 * kMiB), worth / 2) << request_ns;
    }
  }
}

TEST(RequestCost, OfALinkThatOnlyBytesFillIsSmall) {
  RequestCost cost;
  busy(&cost, 0, 8, {128 << 10, 32 << 10});
  EXPECT_LT(cost.worth(), 4096U);
}

TEST(RequestCost, IsWorthATrialWhereAllAreOfOneSize) {
  RequestCost cost;
  EXPECT_EQ(cost.worth(), 0U);
  busy(&cost, 500e3, 8, {4096});
  EXPECT_GE(cost.worth(), 2 * 4096U) << "larger ones show the rest";
  EXPECT_NEAR(cost.request_ns(), 500e3, 150e3);
}

// Reads of 64 KiB over a link that they filled were taken for a sign that requests are dear.
TEST(RequestCost, IsNotTriedWhereAllAreLarge) {
  RequestCost cost;
  busy(&cost, 0, 8, {64 << 10});
  EXPECT_LT(cost.worth(), 4096U);
  busy(&cost, 500e3, 8, {64 << 10});
  EXPECT_LT(cost.worth(), 64U << 10);
}

TEST(RequestCost, FollowsAStorageThatChanges) {
  RequestCost cost;
  busy(&cost, 20e3, 8, {128 << 10, 32 << 10});
  busy(&cost, 500e3, 8, {128 << 10, 32 << 10});
  EXPECT_NEAR(cost.request_ns(), 500e3, 50e3);
}

TEST(StorageModel, SmallRequestsAreDeeperThanBlocks) {
  optimizer::StorageModel model(128 << 10, 256);
  uint64_t now = 1'000'000'000, free = now;
  std::deque<std::pair<uint64_t, optimizer::StorageModel::Sample>> ends;
  // 10 ms of latency and 100 MB/s.
  const auto run = [&](uint32_t bytes, int requests) {
    for (int i = 0; i < requests; ++i) {
      while (ends.size() < model.depth(now)) {
        const auto sample = model.on_issue(now, static_cast<unsigned>(ends.size()));
        free = std::max(free, now) + uint64_t{bytes} * 10;
        ends.emplace_back(free + 10'000'000, sample);
      }
      now = std::max(now, ends.front().first);
      model.on_done(ends.front().second, bytes, now);
      ends.pop_front();
    }
  };
  run(128 << 10, 3000);
  const unsigned of_blocks = model.depth(now);
  run(4096, 30000);
  EXPECT_GT(model.depth(now), 2 * of_blocks)
      << "or the link idles: " << model.cost().request_ns() << " ns, " << model.cost().byte_ns();
}

class Waiting : public ::testing::Test {
 protected:
  void add(uint64_t page, uint32_t file = 1, uint32_t session = 1) {
    WantedExtent wanted;
    wanted.extent = {page * 4096, 4096, file};
    wanted.session = session;
    wanted.sample = static_cast<uint32_t>(page);
    waiting_.add(wanted, {page * 4096, (page + 1) * 4096});
  }
  // Pages of the next read, in the order in which they were taken.
  std::vector<uint32_t> take(uint64_t gap = 2, uint64_t longest = 16) {
    std::vector<uint32_t> pages;
    for (const WaitingRead& read : waiting_.take(
             longest * 4096,
             [&](const WaitingRead&, Range between) { return between.length() <= gap * 4096; },
             [this](const WantedExtent& wanted) { return wanted.sample != unwanted_; }, &gone_)) {
      pages.push_back(read.wanted.sample);
    }
    return pages;
  }
  using Pages = std::vector<uint32_t>;

  Gatherer waiting_;
  std::vector<WaitingRead> gone_;
  uint32_t unwanted_ = UINT32_MAX;
};

TEST_F(Waiting, WhoWaitsLongestIsReadWithItsNeighbours) {
  for (const uint64_t page : {50, 10, 53, 47, 60, 46}) add(page);
  EXPECT_EQ(waiting_.bytes(), 6 * 4096U);
  EXPECT_EQ(take(), (Pages{50, 53, 47, 46}));
  EXPECT_EQ(take(), (Pages{10}));
  EXPECT_EQ(take(), (Pages{60}));
  EXPECT_TRUE(take().empty());
  EXPECT_TRUE(waiting_.empty());
  EXPECT_EQ(waiting_.bytes(), 0U);
}

TEST_F(Waiting, AReadIsNoLongerThanOneRequest) {
  for (uint64_t page = 0; page < 40; ++page) add(page);
  EXPECT_EQ(take().size(), 16U);
  EXPECT_EQ(take().size(), 16U);
  EXPECT_EQ(take().size(), 8U);
}

TEST_F(Waiting, OthersFilesAndSessionsAreOtherReads) {
  add(5);
  add(6, 2);
  add(6, 1, 2);
  add(7);  // the other session's lies between
  EXPECT_EQ(take(), (Pages{5, 7}));
  waiting_.remove_file(2, &gone_);
  EXPECT_EQ(gone_.size(), 1U);
  waiting_.remove_session(2, &gone_);
  EXPECT_EQ(gone_.size(), 2U);
  EXPECT_TRUE(waiting_.empty());
}

TEST_F(Waiting, WhoIsNotWantedAnyMoreIsNotRead) {
  for (const uint64_t page : {5, 6, 7}) add(page);
  unwanted_ = 6;
  EXPECT_EQ(take(), (Pages{5, 7}));
  add(6);
  EXPECT_TRUE(take().empty());
  EXPECT_EQ(gone_.size(), 2U);
}

// Storage that answers one request at a time, each in half a millisecond and its bytes at 125 MB/s.
class Runs : public Records {
 protected:
  void answer() {
    if (queue_.empty()) return;
    const PlannedRead read = queue_.front();
    queue_.pop_front();
    now_ += 500'000 + read.range.length() * 8;
    ++requests_;
    world_.cache[1].add(read.range);
    reads_.push_back(read.range);
    scheduler_.on_done(read.token, read.range.length(), 0, now_);
  }
  void plan() {
    std::vector<PlannedRead> reads;
    scheduler_.plan(now_, &reads);
    for (const PlannedRead& read : reads) {
      if (!world_.cache[1].contains(read.range)) {
        queue_.push_back(read);
        continue;
      }
      // Of what is in memory nothing is asked of the storage.
      reads_.push_back(read.range);
      scheduler_.on_done(read.token, read.range.length(), 0, now_ += 5'000);
    }
    std::vector<optimizer::PlannedDrop> drops;
    scheduler_.drops(now_, &drops);
    for (const optimizer::PlannedDrop& drop : drops) {
      dropped_ += world_.cache[1].remove(drop.range);
      scheduler_.on_dropped(drop, world_.cache[1].covered(drop.range), now_);
    }
  }
  // The job waits until each is there.
  void epoch(const std::vector<uint32_t>& order) {
    for (const uint32_t index : order) {
      const Range pages{index * kRecord, (index + 1) * kRecord};
      for (plan(); !queue_.empty() && !world_.cache[1].contains(pages); plan()) answer();
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
TEST_F(Runs, OfAFileOfWhichNobodyTellsWhatIsInMemory) {
  const uint32_t count = 20000;
  make(0, kRecord, count, shuffled(count, 0));
  world_.reports_cache = false;
  epoch(shuffled(count, 0));
  EXPECT_EQ(missed_, 0U);
  EXPECT_LT(requests_, count / 8);
  EXPECT_LT(bytes_read(), 3 * size_) << "each run once, and each record";
  reads_.clear();
  requests_ = 0;
  ASSERT_TRUE(book_.publish(1, set_, 1, 0, shuffled(count, 1)));
  epoch(shuffled(count, 1));
  EXPECT_EQ(requests_, 0U) << "all of it is there";
  EXPECT_LT(bytes_read(), 2 * size_);
  world_.cache[1] = {};  // another process needed the memory
  ASSERT_TRUE(book_.publish(1, set_, 2, 0, shuffled(count, 2)));
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
  scheduler_.resize_file(1, each);
  for (uint32_t file = 2; file <= files; ++file) {
    scheduler_.add_file(file, each, 9);
    scheduler_.file_usable(file, true);
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t at = i * kRecord;
    place(i, {at % each, kRecord, static_cast<uint32_t>(1 + at / each)});
  }
  ASSERT_TRUE(book_.publish(1, set_, 0, 0, order));
  for (const uint32_t index : order) {
    const Extent part = book_.parts(set_, index)[0];
    const Range pages{part.offset, part.offset + kRecord};
    for (plan(); !queue_.empty() && !world_.cache[part.file.followed()].contains(pages); plan()) {
      const PlannedRead read = queue_.front();
      world_.cache[read.file].add(read.range);
      answer();
      // Memory is short: half of what was not read yet is gone.
      if (reads_.size() % 64 == 0)
        world_.cache[1 + reads_.size() / 64 % files].remove({0, each / 2});
    }
    const auto parts = book_.begin(1, 5, set_, index);
    scheduler_.samples().on_sample_begin(1, parts);
    scheduler_.samples().on_sample_end(1, parts);
    book_.end(5, set_, index);
    scheduler_.retention().on_read(1, set_, index, parts, now_);
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
    ASSERT_TRUE(book_.publish(1, set_, number, 0, order));
    epoch(order);
  }
  EXPECT_EQ(missed_, 0U);
  EXPECT_LT(reads_.size(), count * 6 / 10) << "three quarters are read";
  EXPECT_LT(bytes_read(), 3 * size_);
  EXPECT_GT(dropped_, 0U);
  EXPECT_LT(world_.cache[1].bytes(), 20 * kMiB) << "what lay between is evicted as well";
  // Those that stay lie together, where they cut no run to pieces.
  EXPECT_GT(world_.cache[1].covered({0, 8 * kMiB}), 7 * kMiB);
}

class WaitingRuns : public Runs {
 protected:
  // Some records wait for others, and more are on their way.
  void SetUp() override {
    const std::vector<uint32_t> order = shuffled(20000, 0);
    make(16 * kMiB, kRecord, 20000, order);
    for (size_t i = 0; i < 3000; ++i) {
      const Range pages{order[i] * kRecord, (order[i] + 1) * kRecord};
      for (plan(); !world_.cache[1].contains(pages); plan()) answer();
      read(order[i]);
    }
    plan();
    ASSERT_GT(scheduler_.queue().waiting_bytes(9), 100 * kRecord);
  }
};

TEST_F(WaitingRuns, ThatNobodyWantsAnyMoreAreNotRead) {
  const uint64_t flying = queue_.size();
  const size_t before = reads_.size();
  ASSERT_TRUE(book_.publish(1, set_, 0, 0, std::vector<uint32_t>{}));
  while (!queue_.empty()) {
    answer();
    plan();
  }
  EXPECT_EQ(reads_.size(), before + flying);
  EXPECT_EQ(scheduler_.queue().waiting_bytes(9), 0U);
}

// It waited at its old place, was taken for read there, and never came.
TEST_F(WaitingRuns, OfAnOrderThatWasToldAnewAreRead) {
  std::vector<uint32_t> order = shuffled(20000, 0);
  order.erase(order.begin(), order.begin() + 3000);
  std::reverse(order.begin(), order.begin() + 500);
  ASSERT_TRUE(book_.publish(1, set_, 0, 3000, order));
  order.resize(500);
  for (int i = 0; i < 2000; ++i) {
    plan();
    answer();
  }
  for (const uint32_t index : order) {
    EXPECT_TRUE(world_.cache[1].contains({index * kRecord, (index + 1) * kRecord})) << index;
  }
}

TEST_F(WaitingRuns, OfAMountThatIsTurnedOffHoldNoBudget) {
  scheduler_.file_usable(1, false);
  EXPECT_EQ(scheduler_.queue().waiting_bytes(9), 0U);
}

TEST_F(WaitingRuns, OfASessionThatLeavesCountNoMore) {
  scheduler_.remove_session(1, now_);
  book_.leave(1);
  while (!queue_.empty()) answer();
  EXPECT_EQ(scheduler_.accounts().outstanding(), 0U);
  EXPECT_EQ(scheduler_.queue().waiting_bytes(9), 0U);
}

TEST_F(WaitingRuns, OfAFileThatIsGoneCountNoMore) {
  scheduler_.remove_file(1);
  EXPECT_EQ(scheduler_.queue().waiting_bytes(9), 0U);
  while (!queue_.empty()) answer();
  EXPECT_EQ(scheduler_.accounts().outstanding(), 0U);
}

TEST_F(WaitingRuns, OfAFileThatGrewShorterDoNotReachBeyondIt) {
  scheduler_.resize_file(1, size_ / 2);
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
