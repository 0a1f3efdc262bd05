// What records leave in the page cache, when a job has a budget and its data does not fit it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "policy/planner/page_owners.h"
#include "policy/planner/record_plan.h"
#include "tests/unit/records_data.h"

namespace sluice::test {
namespace {

using policy::FileId;
using policy::FilePages;
using policy::PageOwners;
using policy::policy_info;
using policy::PolicyKind;
using policy::RecordPlan;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kRecord = 64 << 10;

TEST(PageOwners, AreWhatCountingEveryByteSays) {
  std::mt19937 draw(7);
  PageOwners owners;
  std::vector<unsigned> model(200);
  std::vector<Range> added;
  for (int step = 0; step < 5000; ++step) {
    if (added.empty() || draw() % 2 == 0) {
      const uint64_t begin = draw() % 190;
      added.push_back({begin, begin + draw() % 10});
      owners.add(added.back());
      for (uint64_t at = added.back().begin; at < added.back().end; ++at) ++model[at];
    } else {
      std::swap(added[draw() % added.size()], added.back());
      owners.release(added.back());
      for (uint64_t at = added.back().begin; at < added.back().end; ++at) --model[at];
      added.pop_back();
    }
    const uint64_t begin = draw() % 200;
    const Range asked{begin, begin + draw() % (200 - begin + 1)};
    std::vector<Range> found;
    owners.unowned(asked, &found);
    std::set<uint64_t> bytes;
    for (const Range& range : found) {
      for (uint64_t at = range.begin; at < range.end; ++at) EXPECT_TRUE(bytes.insert(at).second);
    }
    for (uint64_t at = asked.begin; at < asked.end; ++at) {
      ASSERT_EQ(bytes.count(at) != 0, model[at] == 0) << "at " << at << " in step " << step;
    }
    ASSERT_LE(found.size(), asked.length());
  }
  for (const Range& range : added) owners.release(range);
  EXPECT_TRUE(owners.empty());
}

// Samples that overlap, move and change in size: what is freed belongs to no sample, and every page
// that was read is either retained or was freed.
TEST(RecordPlan, FreesWhatIsUnownedAndNothingElse) {
  for (const PolicyKind policy : {PolicyKind::kAuto, PolicyKind::kLru, PolicyKind::kMinIo,
                                  PolicyKind::kLfu, PolicyKind::kFifo, PolicyKind::kBelady}) {
    std::mt19937 draw(11);
    RecordPlan plan;
    std::vector<FilePages> freed;
    uint64_t capacity = 40 * kPage;
    plan.track(DatasetId{1}, policy, 50, capacity);
    std::map<uint32_t, std::vector<FilePages>> places;  // of samples, when they were read last
    std::set<std::pair<FileId, uint64_t>> cached;
    const auto gone = [&] {
      for (const FilePages& piece : freed) {
        std::vector<Range> unowned;
        plan.unowned(piece.file, piece.range, &unowned);
        uint64_t bytes = 0;
        for (const Range& part : unowned) bytes += part.length();
        ASSERT_EQ(bytes, piece.range.length())
            << policy_info(policy).name << ": a sample's page was freed";
        for (uint64_t at = piece.range.begin; at < piece.range.end; at += kPage) {
          cached.erase({piece.file, at});
        }
      }
      freed.clear();
    };
    for (int step = 0; step < 4000; ++step) {
      const uint32_t sample = draw() % 50;
      if (places.count(sample) == 0 || draw() % 16 == 0) {
        const uint64_t begin = draw() % 100;
        places[sample] = {{FileId{1}, {begin * kPage, (begin + 1 + draw() % 4) * kPage}}};
        if (draw() % 4 == 0)
          places[sample].push_back({FileId{2}, {begin * kPage, (begin + 1) * kPage}});
      }
      if (draw() % 64 == 0) {
        capacity = (10 + draw() % 60) * kPage;
        plan.set_capacity(DatasetId{1}, capacity, &freed);
        gone();
      }
      if (draw() % 64 == 0) {
        std::vector<uint32_t> order(50);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), draw);
        plan.predict(DatasetId{1}, order);
      }
      for (const FilePages& piece : places[sample]) {
        for (uint64_t at = piece.range.begin; at < piece.range.end; at += kPage) {
          cached.insert({piece.file, at});
        }
      }
      plan.on_read(SessionId{1}, DatasetId{1}, sample, places[sample], &freed);
      gone();
      for (const auto& [file, at] : cached) {
        std::vector<Range> unowned;
        plan.unowned(file, {at, at + kPage}, &unowned);
        ASSERT_TRUE(unowned.empty())
            << policy_info(policy).name << ": a page stays that no sample retains";
      }
      ASSERT_LE(plan.retained(), capacity);
    }
    EXPECT_GT(plan.retained(), 0U) << policy_info(policy).name;
    plan.untrack(DatasetId{1});
    EXPECT_FALSE(plan.tracks(DatasetId{1}));
  }
}

std::vector<uint32_t> shuffled(uint32_t count, unsigned seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

TEST_F(Records, WhatDoesNotFitTheBudgetIsBoundedAndAShareOfItComesAgain) {
  constexpr uint32_t kCount = 2000;
  constexpr uint64_t kBudget = kCount * kRecord / 5;
  make(kBudget, kRecord, kCount, shuffled(kCount, 0));
  std::vector<uint64_t> fetched;
  for (uint32_t epoch = 0; epoch < 4; ++epoch) {
    const std::vector<uint32_t> order = shuffled(kCount, epoch);
    ASSERT_TRUE(book_.publish(SessionId{1}, set_, epoch, 0, order));
    scheduler_.retention().predict();
    const uint64_t before = bytes_read();
    for (const uint32_t index : order) {
      pump();
      read(index);
      // One window more was read before it was known how much that is.
      ASSERT_LE(world_.cache[FileId{1}].bytes(), kBudget + kBudget / 16);
    }
    fetched.push_back(bytes_read() - before);
  }
  EXPECT_EQ(missed_, 0U);
  EXPECT_EQ(fetched[0], kCount * kRecord);
  // The budget less what is read ahead stays: nearly a fifth.
  for (uint32_t epoch = 1; epoch < 4; ++epoch) {
    EXPECT_LT(static_cast<double>(fetched[epoch]), 0.88 * kCount * kRecord) << epoch;
    EXPECT_GE(static_cast<double>(fetched[epoch]), 0.79 * kCount * kRecord) << epoch;
  }
}

// A job chooses by importance in its sixth epoch: the policy of its first read held on.
TEST_F(Records, APolicyThatIsChosenLaterHoldsForWhatIsRetained) {
  constexpr uint32_t kCount = 2000;
  make(kCount * kRecord / 5, kRecord, kCount, shuffled(kCount, 0));
  for (const uint32_t index : shuffled(kCount, 0)) {
    pump();
    read(index);
  }
  EXPECT_EQ(scheduler_.retention().records().policy(set_), PolicyKind::kAuto);
  const uint64_t retained = scheduler_.retention().records().retained();
  scheduler_.accounts().set_policy(SessionId{1}, PolicyKind::kShade);
  const uint64_t before = dropped_;
  const std::vector<uint32_t> order = shuffled(kCount, 1);
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 1, 0, order));
  pump();
  read(order[0]);
  EXPECT_EQ(scheduler_.retention().records().policy(set_), PolicyKind::kShade);
  EXPECT_GE(scheduler_.retention().records().retained() + 2 * kRecord, retained)
      << "nothing is evicted for that alone";
  EXPECT_LE(dropped_ - before, 4 * kMiB);
  for (uint32_t i = 0; i < kCount; ++i) {
    scheduler_.retention().set_importance(set_, i, i < kCount / 8 ? 2 : 0.5F);
  }
  for (size_t i = 1; i < kCount; ++i) {
    pump();
    read(order[i]);
  }
  const auto important = [&] {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < kCount / 8; ++i) {
      bytes += world_.cache[FileId{1}].covered({i * kRecord, (i + 1) * kRecord});
    }
    return bytes;
  };
  EXPECT_GT(important(), kCount / 8 * kRecord / 10 * 9) << "those that matter stay";
  // Another job comes to share them, and ends: their importance was reported before.
  for (const PolicyKind policy : {PolicyKind::kNeeded, PolicyKind::kShade}) {
    scheduler_.accounts().set_policy(SessionId{1}, policy);
    for (const uint32_t index : shuffled(kCount / 8, 2)) {
      pump();
      read(kCount / 2 + index);
      ASSERT_EQ(scheduler_.retention().records().policy(set_), policy);
    }
    EXPECT_GT(important(), kCount / 8 * kRecord / 10 * 9) << policy_info(policy).name;
  }
}

TEST_F(Records, NothingIsTakenFromAJobWithoutABudgetOfItsOwn) {
  make(0, kRecord, 2000, shuffled(2000, 0));
  scheduler_.accounts().set_budget(10 * kMiB);
  for (const uint32_t index : shuffled(2000, 0)) {
    pump();
    read(index);
  }
  EXPECT_EQ(dropped_, 0U);
  EXPECT_FALSE(scheduler_.retention().bounds(SessionId{1}));
}

TEST_F(Records, NorWhereAnotherJobReadsTheDatasetWithoutOne) {
  make(10 * kMiB, kRecord, 1000, shuffled(1000, 0));
  scheduler_.add_session(SessionId{2}, {}, true, 0);
  ASSERT_EQ(book_.use(SessionId{2}, "set", 1000), set_);
  for (const uint32_t index : shuffled(1000, 0)) {
    pump();
    read(index);
  }
  EXPECT_EQ(dropped_, 0U);
  scheduler_.remove_session(SessionId{2}, now_);
  book_.leave(SessionId{2});
  scheduler_.retention().remove_session(SessionId{2});
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 1, 0, shuffled(1000, 1)));
  for (const uint32_t index : shuffled(1000, 1)) {
    pump();
    read(index);
  }
  EXPECT_GT(dropped_, 0U) << "it has left";
  EXPECT_TRUE(scheduler_.retention().bounds(SessionId{1}));
}

TEST_F(Records, AFileThatFitsTheBudgetStays) {
  make(100 * kMiB, kRecord, 1000, shuffled(1000, 0));
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(book_.publish(SessionId{1}, set_, epoch, 0, shuffled(1000, epoch)));
    for (const uint32_t index : shuffled(1000, epoch)) {
      pump();
      read(index);
    }
  }
  EXPECT_EQ(dropped_, 0U);
  EXPECT_EQ(bytes_read(), 1000 * kRecord);
}

// What is dropped while a worker maps it stays; it is tried once more when that has ended.
TEST_F(Records, WhatWasMappedWhenItWasDroppedIsDroppedLater) {
  make(4 * kMiB, kRecord, 1000, shuffled(1000, 0));
  const std::vector<uint32_t> order = shuffled(1000, 0);
  for (size_t i = 0; i < 200; ++i) {
    pump();
    if (i == 150) mapped_.add({0, 1000 * kRecord});
    read(order[i]);
  }
  pump();
  const uint64_t full = world_.cache[FileId{1}].bytes();
  EXPECT_GT(full, 4 * kMiB);
  mapped_.clear();
  now_ += 2'000'000'000;
  pump();
  EXPECT_LE(world_.cache[FileId{1}].bytes(), 4 * kMiB + kMiB / 2);
}

// Small records share pages: none is dropped that a retained one needs, or one that comes soon.
TEST_F(Records, ThatShareAPageDoNotTakeItFromEachOther) {
  constexpr uint32_t kCount = 20000;
  make(4 * kMiB, 1000, kCount, shuffled(kCount, 0));
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    ASSERT_TRUE(book_.publish(SessionId{1}, set_, epoch, 0, shuffled(kCount, epoch)));
    for (const uint32_t index : shuffled(kCount, epoch)) {
      pump();
      read(index);
    }
  }
  EXPECT_EQ(missed_, 0U) << "something was dropped that had been read ahead";
  EXPECT_GT(dropped_, 0U);
}

// Where a batch is put together of views its pages are touched when its samples have ended.
TEST_F(Records, OfTheSamplesJustReadStayUntilTheirBatchIsTogether) {
  constexpr uint32_t kBatch = 16, kWorkers = 4, kCount = 2000;
  make(kCount * kRecord / 5, kRecord, kCount, shuffled(kCount, 0));
  uint64_t touched_in_vain = 0;
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<uint32_t> order = shuffled(kCount, epoch);
    ASSERT_TRUE(book_.publish(SessionId{1}, set_, epoch, 0, order));
    // Workers read their batches side by side, a sample each in turn.
    for (uint32_t first = 0; first + kWorkers * kBatch <= kCount; first += kWorkers * kBatch) {
      for (uint32_t turn = 0; turn < kWorkers * kBatch; ++turn) {
        pump();
        read(order[first + turn % kWorkers * kBatch + turn / kWorkers]);
      }
      for (uint32_t at = first; at < first + kWorkers * kBatch; ++at) {
        const Range record{order[at] * kRecord, (order[at] + 1) * kRecord};
        touched_in_vain += kRecord - world_.cache[FileId{1}].covered(record);
      }
    }
    for (uint32_t at = kCount / (kWorkers * kBatch) * kWorkers * kBatch; at < kCount; ++at) {
      read(order[at]);
    }
  }
  EXPECT_GT(dropped_, 0U);
  // The first rounds are over before it is known how workers read.
  EXPECT_LE(touched_in_vain, 2 * kWorkers * kBatch * kRecord);
}

// What a job asks for counts, not the part of memory that is usual without one.
TEST_F(Records, ABudgetAboveTheUsualOneIsTheJobsOwn) {
  make(100 * kMiB, kRecord, 1000, shuffled(1000, 0));
  scheduler_.accounts().set_budget(10 * kMiB);
  for (const uint32_t index : shuffled(1000, 0)) {
    pump();
    read(index);
  }
  EXPECT_EQ(dropped_, 0U) << "62 MB fit 100";
  scheduler_.retention().set_most(30 * kMiB);  // but there is not that much memory
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 1, 0, shuffled(1000, 1)));
  for (const uint32_t index : shuffled(1000, 1)) {
    pump();
    read(index);
  }
  EXPECT_GT(dropped_, 0U);
}

TEST_F(Records, OfAFileThatTwoDatasetsShareCountOnce) {
  make(70 * kMiB, kRecord, 1000, shuffled(1000, 0));  // 62 MB
  const DatasetId other = book_.use(SessionId{1}, "half", 500);
  for (uint32_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(book_.datasets().locate(SessionId{1}, other, i, {{i * kRecord, kRecord, FileId{1}}},
                                        Source::kDeclared));
  }
  for (uint32_t i = 0; i < 500; ++i) {
    scheduler_.retention().on_read(SessionId{1}, other, i, book_.parts(other, i), now_);
    read(i);
  }
  EXPECT_FALSE(scheduler_.retention().bounds(SessionId{1}));
}

TEST_F(Records, AJobWithoutABudgetThatReadsTheFileByAnotherNameIsSparedToo) {
  make(10 * kMiB, kRecord, 1000, shuffled(1000, 0));
  scheduler_.retention().use_file(FileId{1}, SessionId{1});
  scheduler_.add_session(SessionId{2}, {}, true, 0);
  scheduler_.retention().use_file(FileId{1}, SessionId{2});
  for (const uint32_t index : shuffled(1000, 0)) {
    pump();
    read(index);
  }
  EXPECT_EQ(dropped_, 0U);
  scheduler_.remove_session(SessionId{2}, now_);
  scheduler_.retention().remove_session(SessionId{2});
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 1, 0, shuffled(1000, 1)));
  for (const uint32_t index : shuffled(1000, 1)) {
    pump();
    read(index);
  }
  EXPECT_GT(dropped_, 0U);
}

TEST_F(Records, OfAFileThatIsGoneAreForgotten) {
  make(10 * kMiB, kRecord, 1000, shuffled(1000, 0));
  for (const uint32_t index : shuffled(1000, 0)) {
    pump();
    read(index);
  }
  EXPECT_GT(scheduler_.retention().records().retained(), 0U);
  scheduler_.remove_file(FileId{1});
  EXPECT_EQ(scheduler_.retention().records().retained(), 0U);
  EXPECT_FALSE(scheduler_.retention().bounds(SessionId{1}));
  pump();
}

// A dataset may say that it has any number of samples, and a client that it read the last of them.
TEST_F(Records, ADatasetOfBillionsOfSamplesTakesNoMemory) {
  make(10 * kMiB, kRecord, 1000, {});
  const DatasetId huge = book_.use(SessionId{1}, "huge", uint64_t{1} << 32);
  ASSERT_TRUE(
      book_.datasets().locate(SessionId{1}, huge, 5, {{0, kRecord, FileId{1}}}, Source::kDeclared));
  const auto parts = book_.parts(huge, 5);
  scheduler_.retention().on_read(SessionId{1}, huge, 5, parts, now_);
  scheduler_.retention().on_read(SessionId{1}, huge, UINT32_MAX, parts, now_);
  scheduler_.retention().on_read(SessionId{1}, huge, UINT64_MAX, parts, now_);
  scheduler_.retention().on_read(SessionId{1}, DatasetId{77}, 5, parts, now_);
  EXPECT_LE(scheduler_.retention().records().footprint(), kMiB);
}

}  // namespace
}  // namespace sluice::test
