// In which order positions are handed out to workers that read batches in parallel.
#include "policy/samples/reading_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "policy/samples/sample_order.h"

namespace sluice::test {
namespace {

using policy::ReadingLanes;
using policy::SampleOrder;

constexpr uint64_t kWorkers = 6, kBatch = 32, kCount = 6000;

std::vector<uint32_t> shuffled(uint32_t seed) {
  std::vector<uint32_t> order(kCount);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

// Workers of a loader, each of which reads the batches that come to it by turns.
class Workers {
 public:
  explicit Workers(uint64_t batch = kBatch) : batch_(batch), at_(kWorkers) {
    for (uint64_t worker = 0; worker < kWorkers; ++worker) at_[worker] = worker * batch;
  }
  // The next position of the worker; kCount: it has none left.
  uint64_t at(uint64_t worker) const { return std::min(at_[worker], kCount); }
  void step(uint64_t worker) {
    if (++at_[worker] % batch_ == 0) at_[worker] += (kWorkers - 1) * batch_;
  }
  bool done() const {
    return std::ranges::all_of(at_, [](uint64_t at) { return at >= kCount; });
  }

 private:
  const uint64_t batch_;
  std::vector<uint64_t> at_;
};

// Runs an epoch with at most `most` samples ahead. Returns how many a worker came to before they
// were handed out. `lag`: how often a worker waits for a turn, of 100.
uint64_t run_epoch(SampleOrder* job, const std::vector<uint32_t>& order, uint64_t most,
                   uint32_t lag, uint64_t batch = kBatch) {
  std::mt19937 draw(7);
  std::vector<bool> handed(kCount);
  uint64_t missed = 0, taken = 0;
  Workers workers(batch);
  while (!workers.done()) {
    for (uint64_t worker = 0; worker < kWorkers; ++worker) {
      while (taken < kCount && job->ahead_bytes() < most && job->peek()) {
        handed[job->cursor()] = true;
        job->hand_out(1);
      }
      const uint64_t at = workers.at(worker);
      if (at >= kCount || draw() % 100 < lag) continue;
      missed += handed[at] ? 0 : 1;
      ++taken;
      EXPECT_TRUE(job->take(order[at], worker + 1));
      workers.step(worker);
    }
  }
  EXPECT_EQ(job->ahead_bytes(), 0U);
  EXPECT_EQ(job->taken(), kCount);
  return missed;
}

TEST(ReadingLanes, FewSamplesAheadAreEnoughForAllWorkers) {
  constexpr uint64_t kEnough = 4 * kWorkers;
  SampleOrder job;
  for (uint32_t epoch = 0; epoch < 3; ++epoch) job.publish(epoch, 0, shuffled(epoch));
  EXPECT_FALSE(job.beyond().by_worker);
  EXPECT_GT(run_epoch(&job, shuffled(0), kEnough, 0), 0U) << "nothing was known of the workers";
  EXPECT_TRUE(job.beyond().by_worker);
  EXPECT_EQ(run_epoch(&job, shuffled(1), kEnough, 0), 0U);
  EXPECT_LE(run_epoch(&job, shuffled(2), kEnough, 30), kCount / 100);
}

TEST(ReadingLanes, BatchesOfAnotherSizeAreLearnedWhileTheyAreRead) {
  constexpr uint64_t kEnough = 4 * kWorkers, kOther = 50;
  SampleOrder job;
  for (uint32_t epoch = 0; epoch < 3; ++epoch) job.publish(epoch, 0, shuffled(epoch));
  run_epoch(&job, shuffled(0), kEnough, 10);
  run_epoch(&job, shuffled(1), kEnough, 10, kOther);
  EXPECT_EQ(run_epoch(&job, shuffled(2), kEnough, 0, kOther), 0U);
}

// As PyTorch's loader does with in_order=False.
TEST(ReadingLanes, BatchesThatAreTakenByWhoeverIsFreeAreHandedOutInOrder) {
  SampleOrder job;
  for (uint32_t epoch = 0; epoch < 2; ++epoch) job.publish(epoch, 0, shuffled(epoch));
  run_epoch(&job, shuffled(0), 24, 0);
  ASSERT_TRUE(job.beyond().by_worker);
  std::mt19937 draw(5);
  const auto order = shuffled(1);
  std::vector<uint64_t> at(kWorkers), end(kWorkers);
  uint64_t begun = 0;
  while (job.epoch() == 0 || job.taken() < kCount) {
    const uint64_t worker = draw() % kWorkers;
    if (at[worker] == end[worker]) {
      if (begun == kCount) continue;
      at[worker] = begun;
      end[worker] = begun = std::min(begun + kBatch, kCount);
    }
    ASSERT_TRUE(job.take(order[at[worker]++], worker + 1));
  }
  EXPECT_FALSE(job.beyond().by_worker);
}

// A sample that occurs twice, or that something else reads: its worker is not that far.
TEST(ReadingLanes, ASampleThatIsTakenFarAheadOfItsWorkerLeavesTheOthersTheirTurns) {
  constexpr uint64_t kEnough = 4 * kWorkers;
  SampleOrder job;
  for (uint32_t epoch = 0; epoch < 2; ++epoch) job.publish(epoch, 0, shuffled(epoch));
  run_epoch(&job, shuffled(0), kEnough, 0);
  ASSERT_TRUE(job.beyond().by_worker);
  ASSERT_TRUE(job.peek());
  ASSERT_TRUE(job.take(shuffled(1)[10 * kWorkers * kBatch + kBatch + 1], kWorkers + 1));
  std::vector<uint64_t> ahead(kWorkers);
  for (uint64_t each = 0; each < kEnough; ++each) {
    ASSERT_TRUE(job.peek());
    ++ahead[job.cursor() / kBatch % kWorkers];
    job.hand_out(1);
  }
  EXPECT_EQ(ahead, std::vector<uint64_t>(kWorkers, 4));
}

// The same samples are also read in another loop, by the job itself: with a sixth of what is ahead
// the storage would idle.
TEST(ReadingLanes, AReaderOfItsOwnGetsAllInOrder) {
  SampleOrder job;
  for (uint32_t epoch = 0; epoch < 2; ++epoch) job.publish(epoch, 0, shuffled(epoch));
  run_epoch(&job, shuffled(0), 24, 0);
  ASSERT_TRUE(job.beyond().by_worker);
  for (const uint32_t sample : shuffled(1)) ASSERT_TRUE(job.take(sample, 99));
  EXPECT_FALSE(job.beyond().by_worker);
}

TEST(ReadingLanes, AnOrderThatIsToBeReadInSequenceHasOne) {
  SampleOrder job;
  for (uint32_t epoch = 0; epoch < 3; ++epoch) job.publish(epoch, 0, shuffled(epoch));
  run_epoch(&job, shuffled(0), 24, 0);
  EXPECT_EQ(job.beyond().samples, 4 * kWorkers);
  job.set_sequence(true);
  EXPECT_FALSE(job.beyond().by_worker);
  EXPECT_GE(job.beyond().samples, (kWorkers - 1) * kBatch);
  run_epoch(&job, shuffled(1), 24, 0);
  EXPECT_FALSE(job.beyond().by_worker);
  job.set_sequence(false);
  run_epoch(&job, shuffled(2), 24, 0);
  EXPECT_TRUE(job.beyond().by_worker);
}

TEST(ReadingLanes, EachPositionIsHandedOutOnceHoweverWorkersFallBehind) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 draw(seed);
    ReadingLanes lanes;
    std::vector<bool> taken(kCount), handed(kCount);
    const auto hand_out = [&] {
      const uint64_t at = lanes.next(
          kCount, [&](uint64_t i) { return bool{taken[i]}; },
          [&](uint64_t i) { return bool{handed[i]}; });
      if (at == kCount) return false;
      EXPECT_FALSE(handed[at]);
      EXPECT_FALSE(taken[at]);
      handed[at] = true;
      lanes.pass(true);
      return true;
    };
    Workers workers;
    uint64_t head = 0;
    while (!workers.done()) {
      const uint64_t worker = draw() % kWorkers % (1 + draw() % kWorkers);
      if (const uint64_t at = workers.at(worker); at < kCount) {
        taken[at] = true;
        if (handed[at]) lanes.leave(at);
        while (head < kCount && taken[head]) ++head;
        const bool seen = draw() % 50 != 0;  // or the event was lost
        if (seen && lanes.take(worker + 1, at, head)) {
          for (uint64_t one = head; one < kCount; ++one) {
            if (handed[one] && !taken[one]) lanes.enter(one);
          }
        }
        workers.step(worker);
      }
      if (draw() % 3 == 0) hand_out();
      if (draw() % 500 == 0) {
        lanes.return_to(head);
        for (uint64_t at = head; at < kCount; ++at) {
          if (handed[at] && !taken[at]) lanes.leave(at);
          handed[at] = false;
        }
      }
    }
    EXPECT_FALSE(hand_out()) << "all were taken, seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::test
