// What is staged, retained and evicted: pure decisions, and the numbers of files that samples are.
#include "policy/copies/stage_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace sluice::optimizer {
namespace {

constexpr uint64_t kBytes = 100'000;
constexpr uint64_t kDevice = 42;
constexpr uint64_t kMillisecond = 1'000'000;

TEST(FileTable, FindsWhatItHasAndNothingElse) {
  FileTable files;
  std::map<std::string, uint32_t> known;
  std::mt19937 draw(1);
  for (int i = 0; i < 5000; ++i) {
    const std::string path =
        "/data/" + std::to_string(draw() % 50) + "/" + std::to_string(draw() % 1000);
    const uint32_t file = files.intern(path);
    const auto [at, added] = known.emplace(path, file);
    EXPECT_EQ(at->second, file) << path;
  }
  EXPECT_EQ(files.size(), known.size());
  for (const auto& [path, file] : known) {
    EXPECT_EQ(files.path(file), path);
    EXPECT_EQ(files.find(path), file);
  }
  EXPECT_EQ(files.find("/data/1/none"), FileTable::kNone);
  EXPECT_EQ(files.find("/data/none/1"), FileTable::kNone);
  EXPECT_TRUE(files.has_folder_below("/data"));
  EXPECT_TRUE(files.has_folder_below("/data/7"));
  EXPECT_FALSE(files.has_folder_below("/dat"));
  EXPECT_FALSE(files.has_folder_below("/data/7/1"));
}

TEST(FileTable, EveryByteThatANameMayHold) {
  FileTable files;
  std::string name;
  for (int c = 1; c < 256; ++c) {
    if (c != '/') name += static_cast<char>(c);
  }
  const uint32_t file = files.intern("/d/" + name);
  EXPECT_EQ(files.path(file), "/d/" + name);
  EXPECT_EQ(files.path(files.intern("/top")), "/top");
}

TEST(FileTable, UnknownSizesAreTheMeanOfTheKnown) {
  FileTable files;
  const uint32_t a = files.intern("/a");
  const uint32_t b = files.intern("/b");
  const uint32_t c = files.intern("/c");
  files.set_bytes(a, 1000);
  files.set_bytes(b, 3000);
  EXPECT_EQ(files.bytes(c), 2000U);
  files.set_bytes(b, 1000);
  EXPECT_EQ(files.bytes(c), 1000U);
  files.set_bytes(c, 0);
  EXPECT_EQ(files.bytes(c), 0U);
}

// A stage whose storage answers as the test says, and what jobs would see of it.
class StagePlanTest : public testing::Test {
 protected:
  static constexpr uint64_t kMuch = 1ULL << 40;

  uint32_t file(int i) { return files.intern("/data/" + std::to_string(i)); }
  std::vector<uint32_t> numbers(const std::vector<int>& samples) {
    std::vector<uint32_t> out;
    out.reserve(samples.size());
    for (const int i : samples) out.push_back(file(i));
    return out;
  }

  // True if the copy is there, or on its way, afterwards.
  bool want(int i) {
    now += kMillisecond;
    const FetchVerdict answer = plan.judge(file(i), now);
    if (answer == FetchVerdict::kTake) flying.push_back(plan.start(file(i), 1, now));
    check();
    return answer != FetchVerdict::kLater;
  }
  void arrive() {
    for (const PlannedFetch& fetch : flying) {
      now += kMillisecond;
      if (fetch.check) {
        plan.on_valid(fetch);
        continue;
      }
      ++fetched;
      if (plan.on_staged(fetch, kDevice, kBytes, FileTable::charge(kBytes), now)) {
        there.insert(fetch.file);
      }
    }
    flying.clear();
    check();
  }
  void check() {
    for (const uint32_t gone : plan.table().evicted()) {
      EXPECT_EQ(there.erase(gone), 1U) << "evicted twice, or never staged: " << gone;
    }
    plan.table().evicted().clear();
    EXPECT_LE(plan.table().used(), plan.room().budget());
    EXPECT_LE(plan.table().ahead(), plan.table().used());
    uint64_t charged = there.size() * FileTable::charge(kBytes);
    EXPECT_GE(plan.table().used(), charged);
  }

  FileTable files;
  StagePlan plan{&files};
  std::vector<PlannedFetch> flying;
  std::set<uint32_t> there;
  uint64_t now = 1'000'000'000'000;
  int fetched = 0;
};

TEST_F(StagePlanTest, OneFetchHoweverManyWantIt) {
  plan.room().set_budget(kMuch, 1000);
  EXPECT_TRUE(want(1));
  EXPECT_TRUE(want(1));
  EXPECT_EQ(flying.size(), 1U);
  EXPECT_EQ(plan.table().has(file(1)), CopyTable::Has::kComing);
  arrive();
  EXPECT_EQ(plan.table().has(file(1)), CopyTable::Has::kStaged);
  EXPECT_TRUE(want(1));
  EXPECT_TRUE(flying.empty());
}

TEST_F(StagePlanTest, WhatCameFromAPackSaysNothingOfTheStoragesLatency) {
  plan.room().set_budget(kMuch, 1000);
  const auto fetch = [&](int i, uint64_t ns, bool from_storage) {
    ASSERT_EQ(plan.judge(file(i), now), FetchVerdict::kTake);
    const PlannedFetch planned = plan.start(file(i), 1, now);
    now += ns;
    EXPECT_TRUE(
        plan.on_staged(planned, kDevice, kBytes, FileTable::charge(kBytes), now, from_storage));
  };
  for (int i = 0; i < 20; ++i) fetch(i, 10 * kMillisecond, true);
  EXPECT_EQ(plan.demand(file(0)).alone_ns, 10 * kMillisecond);
  for (int i = 20; i < 60; ++i) fetch(i, kMillisecond / 10, false);
  EXPECT_EQ(plan.demand(file(0)).alone_ns, 10 * kMillisecond);
  fetch(60, kMillisecond, true);
  EXPECT_LT(plan.demand(file(0)).alone_ns, 10 * kMillisecond);
}

TEST_F(StagePlanTest, OriginalsAreReadAheadWhereCopiesAreOfNoUse) {
  constexpr uint32_t kDataset = 5;
  plan.room().set_budget(kMuch, 1000);
  const auto fetch = [&](int i) {
    now += kMillisecond;
    EXPECT_EQ(plan.judge(file(i), now), FetchVerdict::kTake);
    const PlannedFetch planned = plan.start(file(i), 1, now, kDataset);
    now += kMillisecond;
    EXPECT_TRUE(plan.on_staged(planned, kDevice, kBytes, FileTable::charge(kBytes), now));
    there.insert(file(i));
    return planned.to_cache;
  };
  EXPECT_FALSE(fetch(1));
  EXPECT_TRUE(plan.table().offers(file(1), now));
  EXPECT_FALSE(plan.table().offers(file(1), now - 1)) << "it was not there yet";
  EXPECT_FALSE(plan.table().offers(file(2), now));
  want(9);  // of another dataset
  arrive();
  plan.need_originals(kDataset);
  check();
  EXPECT_EQ(there, std::set<uint32_t>{file(9)}) << "a copy of no use stays";

  EXPECT_TRUE(fetch(2));
  EXPECT_EQ(plan.table().has(file(2)), CopyTable::Has::kStaged);
  EXPECT_FALSE(plan.table().offers(file(2), now));
  EXPECT_GT(plan.table().ahead(), 0U);
  now += 10 * CopyMounts::kMaxDepth * 1'000'000'000ULL;
  std::vector<PlannedFetch> checks;
  plan.on_read(2, file(9));
  plan.look_again(now, &checks);
  for (const PlannedFetch& one : checks) EXPECT_NE(one.file, file(2)) << "the job sees it itself";
  plan.on_read(1, file(2));
  check();
  EXPECT_FALSE(there.contains(file(2))) << "from now on the kernel's";
  EXPECT_EQ(plan.table().ahead(), 0U);
  EXPECT_TRUE(fetch(2));
  plan.forget_dataset(kDataset);
  EXPECT_FALSE(fetch(3));
}

TEST_F(StagePlanTest, AnotherPolicyGoesByWhatTheOneBeforeWasTold) {
  plan.room().set_policy(PolicyKind::kShade);
  plan.room().set_budget(4 * FileTable::charge(kBytes), 1000);
  const auto read = [&](int i, float importance) {
    want(i);
    arrive();
    plan.room().set_importance(file(i), importance);
    plan.on_read(1, file(i));
    check();
  };
  for (const int i : {1, 2, 3}) read(i, static_cast<float>(i % 3) + 1);  // 2 matters most, then 1
  for (const PolicyKind other :
       {PolicyKind::kNeeded, PolicyKind::kAuto, PolicyKind::kLru, PolicyKind::kShade}) {
    plan.room().set_policy(other);
    EXPECT_EQ(plan.room().kept(), 3 * FileTable::charge(kBytes)) << policy_info(other).name;
  }
  plan.room().set_budget(2 * FileTable::charge(kBytes), 1000);
  check();
  EXPECT_EQ(there, (std::set<uint32_t>{file(1), file(2)}));
}

// The policy was not notified of readings that it has nothing to decide of: what was read by both
// of two jobs was needed soonest of all from then on.
TEST_F(StagePlanTest, WhatBothHaveReadIsNotNeededAnyMore) {
  plan.room().set_policy(PolicyKind::kNeeded);
  plan.room().set_budget(2 * FileTable::charge(kBytes), 1000);
  plan.predict(numbers({1, 1, 2, 2, 3, 3}));
  want(1);
  want(1);  // for the second job
  arrive();
  plan.on_read(1, file(1));
  plan.on_read(2, file(1));
  plan.on_read(1, file(2));  // it was not there
  want(2);
  plan.on_read(1, file(2));  // it is on its way, and its readers did not wait
  arrive();
  for (const int i : {2, 3}) {
    want(i);
    arrive();
    plan.room().set_importance(file(i), 1);
    plan.on_read(1, file(i));
    check();
  }
  EXPECT_EQ(there, (std::set<uint32_t>{file(2), file(3)})) << "the first matters least";
}

TEST_F(StagePlanTest, WhatSomebodyElseStillWantsStays) {
  plan.room().set_policy(PolicyKind::kMinIo);
  plan.room().set_budget(3 * FileTable::charge(kBytes), 1000);
  want(1);
  want(1);  // for a second job
  arrive();
  plan.on_read(1, file(1));
  want(2);
  want(3);
  arrive();
  EXPECT_FALSE(want(4)) << "two are ahead, one is wanted once more";
  plan.on_read(2, file(1));
  EXPECT_EQ(there.count(file(1)), 1U);
}

TEST_F(StagePlanTest, AFileThatChangedWhileItCameIsNotTaken) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  plan.drop(file(1));
  arrive();
  EXPECT_EQ(plan.table().has(file(1)), CopyTable::Has::kNot);
  EXPECT_EQ(plan.table().used(), 0U);
  EXPECT_TRUE(want(1)) << "the next time it is fetched anew";
  arrive();
  EXPECT_EQ(there.size(), 1U);
}

TEST_F(StagePlanTest, AnOldLookIsRepeatedBeforeItsReaderComes) {
  plan.set_stale(3000 * kMillisecond);
  plan.room().set_budget(kMuch, 1000);
  want(1);
  arrive();
  plan.on_read(1, file(1));
  now += 2000 * kMillisecond;
  want(1);
  ASSERT_EQ(flying.size(), 1U);
  EXPECT_TRUE(flying.front().check);
  arrive();
  EXPECT_EQ(fetched, 1);
  now += 2000 * kMillisecond;
  want(1);
  ASSERT_EQ(flying.size(), 1U);
  plan.on_failed(flying.front(), StagePlan::Failure::kChanged);
  flying.clear();
  check();
  EXPECT_TRUE(there.empty());
  plan.look_again(now, &flying);
  ASSERT_EQ(flying.size(), 1U) << "its reader still comes";
  EXPECT_FALSE(flying.front().check);
  arrive();
  EXPECT_EQ(there.size(), 1U);
}

TEST_F(StagePlanTest, WhereEveryReaderLooksNobodyElseDoes) {
  plan.set_stale(0);
  plan.room().set_budget(kMuch, 1000);
  want(1);
  arrive();
  now += 5000 * kMillisecond;
  plan.look_again(now, &flying);
  EXPECT_TRUE(flying.empty());
  want(1);
  EXPECT_TRUE(flying.empty());
}

TEST_F(StagePlanTest, WhatWaitsForItsReaderIsLookedAtNowAndThen) {
  plan.set_stale(3000 * kMillisecond);
  plan.room().set_budget(kMuch, 1000);
  want(1);
  want(2);
  arrive();
  plan.on_read(1, file(2));
  for (int i = 1; i <= 3; ++i) {
    now += 1600 * kMillisecond;
    plan.look_again(now, &flying);
    ASSERT_EQ(flying.size(), 1U) << "the one that was not read yet";
    EXPECT_TRUE(flying.front().check);
    EXPECT_EQ(flying.front().file, file(1));
    arrive();
    plan.look_again(now, &flying);
    EXPECT_TRUE(flying.empty());
  }
}

TEST_F(StagePlanTest, ALookWhoseCopyWentMeanwhileMeansNothing) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  arrive();
  now += 2000 * kMillisecond;
  want(1);
  const PlannedFetch look = flying.front();
  flying.clear();
  plan.drop(file(1));
  check();
  want(1);  // fetched again
  plan.on_failed(look, StagePlan::Failure::kChanged);
  EXPECT_EQ(plan.table().has(file(1)), CopyTable::Has::kComing);
  EXPECT_FALSE(plan.on_valid(look));
  arrive();
  EXPECT_EQ(there.size(), 1U);
}

TEST_F(StagePlanTest, ALateFetchIsNotAheadOfAnybody) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  plan.on_read(1, file(1));  // from the original
  arrive();
  EXPECT_EQ(plan.table().ahead(), 0U);
}

TEST_F(StagePlanTest, RefusedOnceIsRefusedUntilTheNextOrder) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  plan.on_failed(flying.front(), StagePlan::Failure::kError);
  flying.clear();
  EXPECT_TRUE(want(1));
  EXPECT_TRUE(flying.empty());
  plan.predict(numbers({1}));
  want(1);
  EXPECT_EQ(flying.size(), 1U);
  plan.on_failed(flying.front(), StagePlan::Failure::kMount);
  flying.clear();
  plan.predict(numbers({1, 2}));
  want(1);
  want(2);
  EXPECT_TRUE(flying.empty()) << "nothing of that folder any more";
}

TEST_F(StagePlanTest, AFileThatCannotFitIsLeftAlone) {
  plan.room().set_budget(kBytes / 2, 1000);
  EXPECT_TRUE(want(1));
  EXPECT_TRUE(flying.empty());
  EXPECT_EQ(plan.table().used(), 0U);
}

TEST_F(StagePlanTest, WhatIsPromisedToStayIsNotTakenByWhatIsAhead) {
  const uint64_t charge = FileTable::charge(kBytes);
  plan.room().set_policy(PolicyKind::kShade);
  plan.room().set_budget(100 * charge, 1000);
  plan.room().window(0, now);
  for (int i = 0; i < 100; ++i) {
    plan.room().set_importance(file(i), 1.0F);
    want(i);
    arrive();
    plan.on_read(1, file(i));
  }
  const uint64_t keepable = plan.room().keepable();
  EXPECT_GT(keepable, 40 * charge);
  EXPECT_LT(keepable, 100 * charge);
  EXPECT_LE(plan.room().window(1000, now), 100 * charge - keepable);
  int ahead = 0;
  while (ahead < 100 && want(1000 + ahead)) {
    ++ahead;
    arrive();
  }
  EXPECT_GE(plan.room().kept(), keepable - charge);
  EXPECT_EQ(static_cast<uint64_t>(ahead), (100 * charge - keepable) / charge);
  for (int i = 0; i < ahead; ++i) plan.on_read(1, file(1000 + i));
  EXPECT_TRUE(want(2000)) << "they make way";
  // A copy that was read and not retained comes back as one that is ahead: no more of them either.
  arrive();
  for (int i = 1; i < ahead; ++i) want(2000 + i);
  EXPECT_LE(plan.table().ahead(), 100 * charge - keepable);
  arrive();
  plan.room().set_budget(200 * charge, 1000);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(want(3000 + i)) << "nothing is promised of that budget";
    arrive();
  }
}

TEST_F(StagePlanTest, AFileThatIsLargerThanWhatMayBeAheadComesAlone) {
  plan.room().set_budget(16 << 20, 1000);
  plan.room().window(0, now);
  const uint64_t most = (16 << 20) - plan.room().keepable();
  for (const int i : {1, 2}) files.set_bytes(file(i), most + 1);
  EXPECT_TRUE(want(1));
  EXPECT_FALSE(want(2));
  EXPECT_EQ(flying.size(), 1U);
}

TEST_F(StagePlanTest, AFullFileSystemIsABudget) {
  plan.room().set_budget(kMuch, 1000);
  for (int i = 0; i < 8; ++i) want(i);
  arrive();
  for (int i = 0; i < 8; ++i) plan.on_read(1, file(i));
  want(100);
  plan.on_failed(flying.front(), StagePlan::Failure::kFull);
  flying.clear();
  check();
  EXPECT_LT(there.size(), 8U) << "some of what was read makes room";
}

TEST_F(StagePlanTest, ASmallerBudgetIsKeptAtOnce) {
  plan.room().set_budget(kMuch, 1000);
  for (int i = 0; i < 8; ++i) want(i);
  arrive();
  for (int i = 0; i < 8; ++i) plan.on_read(1, file(i));
  plan.room().set_budget(4 * FileTable::charge(kBytes), 1000);
  check();
  EXPECT_EQ(there.size(), 4U);
}

TEST_F(StagePlanTest, CopiesOfAnAbandonedOrderAreSpent) {
  plan.room().set_budget(kMuch, 1000);
  plan.predict(numbers({1, 2, 3}));
  for (int i = 1; i <= 3; ++i) want(i);
  arrive();
  EXPECT_EQ(plan.table().ahead(), 3 * FileTable::charge(kBytes));
  plan.predict(numbers({3, 4}));
  EXPECT_EQ(plan.table().ahead(), FileTable::charge(kBytes));
  plan.drop_all();
  check();
  EXPECT_EQ(plan.table().used(), 0U);
}

// Whole epochs in shuffled order, one reader: how much is fetched anew with memory for a part.
class Epochs : public StagePlanTest, public testing::WithParamInterface<PolicyKind> {
 protected:
  static constexpr int kFiles = 4000;

  // Share of the files that the last of `count` epochs fetched.
  double share(int count, double part) {
    plan.room().set_policy(GetParam());
    plan.room().set_budget(static_cast<uint64_t>(kFiles * part) * FileTable::charge(kBytes),
                           1 << 20);
    std::mt19937 draw(7);
    std::vector<int> order(kFiles);
    std::iota(order.begin(), order.end(), 0);
    for (int epoch = 0; epoch < count; ++epoch) {
      std::shuffle(order.begin(), order.end(), draw);
      plan.predict(numbers(order));
      fetched = 0;
      size_t ahead = 0;
      for (size_t at = 0; at < order.size(); ++at) {
        while (ahead < std::min(order.size(), at + 16) && want(order[ahead])) ++ahead;
        arrive();
        if (ahead <= at) ahead = at + 1;  // it went to the original
        plan.on_read(1, file(order[at]));
        check();
      }
    }
    return static_cast<double>(fetched) / kFiles;
  }
};

TEST_P(Epochs, NoMoreIsFetchedThanTheMemoryIsShortOf) {
  // A cache of a part c hits at most c of a uniform reshuffle (facts: even Belady's MIN).
  EXPECT_LE(share(4, 0.2), 0.82);
}
INSTANTIATE_TEST_SUITE_P(Policies, Epochs, testing::Values(PolicyKind::kAuto, PolicyKind::kBelady));

}  // namespace
}  // namespace sluice::optimizer
