// Which folders are listed ahead of jobs that walk through a tree.
#include "policy/folders/scan_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::policy {
namespace {

constexpr SessionId kJob{1}, kOther{2};
constexpr uint64_t kDevice = 7;
constexpr FolderKey kRoot{kDevice, 1000};

// Subfolders of kRoot, in the order in which it lists them.
std::vector<Subfolder> listing(unsigned count, uint64_t from = 1) {
  std::vector<Subfolder> out;
  for (unsigned i = 0; i < count; ++i) {
    // By name, the last comes first.
    out.push_back({"n" + std::to_string(9999 - i), from + i});
  }
  return out;
}

class ScanPlanTest : public testing::Test {
 protected:
  void open(uint64_t inode, FolderKey parent = kRoot, SessionId session = kJob,
            uint64_t took_ns = 1'000'000) {
    now_ns_ += 10'000'000;
    plan_.opened(session, {kDevice, inode}, parent, took_ns, now_ns_);
  }
  // Lists all that is to be listed; each folder has so many entries. Their paths.
  std::vector<std::string> carry_out(uint64_t entries = 10) {
    std::vector<std::string> out;
    for (ScanPlan::Task task; plan_.next(&task);) {
      out.push_back(task.path);
      const bool below = task.path.find('/') != std::string::npos;
      plan_.listed(task,
                   task.path.empty() ? root_
                   : below           ? std::vector<Subfolder>()
                                     : inside_,
                   entries, now_ns_);
    }
    return out;
  }

  ScanPlan plan_;
  uint64_t now_ns_ = 1'000'000'000;
  std::vector<Subfolder> root_ = listing(100), inside_;
};

TEST_F(ScanPlanTest, OneFolderIsNoWalk) {
  open(1);
  open(1);
  EXPECT_TRUE(carry_out().empty());
  open(5, {kDevice, 77});
  open(6, {kDevice, 78});
  EXPECT_TRUE(carry_out().empty());
}

TEST_F(ScanPlanTest, TwoSubfoldersBeginOneAndEachSlowOneDoublesIt) {
  open(1);
  open(2);
  EXPECT_EQ(carry_out(), (std::vector<std::string>{"", "n9997", "n9996", "n9995", "n9994"}));
  open(7);
  EXPECT_EQ(carry_out().size(), 8);
  open(16);
  EXPECT_EQ(carry_out().size(), 16);
  open(33);
  EXPECT_EQ(carry_out().size(), 32);
  open(66);
  EXPECT_EQ(carry_out().size(), 34);  // all that are left
  open(100);
  EXPECT_TRUE(carry_out().empty());
}

TEST_F(ScanPlanTest, NamesInOrderAreFollowedInOrder) {
  open(100);
  open(99);
  EXPECT_EQ(carry_out(), (std::vector<std::string>{"", "n9902", "n9903", "n9904", "n9905"}));
  open(94);
  EXPECT_EQ(carry_out().size(), 8);
}

TEST_F(ScanPlanTest, SubfoldersAreListedWhereTheJobListsThem) {
  inside_ = listing(2, 5000);
  open(1);
  open(2);
  carry_out();
  EXPECT_TRUE(plan_.scans(kRoot));
  // What is in the second of them is walked through, too.
  open(2000, {kDevice, 2});
  open(2001, {kDevice, 2});
  const std::vector<std::string> own = carry_out();
  EXPECT_EQ(std::count(own.begin(), own.end(), ""), 1);
  open(7);
  const std::vector<std::string> deep = carry_out();
  ASSERT_EQ(deep.size(), 8 * 3);
  EXPECT_EQ(deep[0], "n9992");
  EXPECT_EQ(deep[1], "n9992/n9999");
  EXPECT_EQ(deep[2], "n9992/n9998");
}

TEST_F(ScanPlanTest, EntriesAreBoundedUntilTheNextReport) {
  open(1);
  open(2);
  EXPECT_EQ(carry_out(ScanPlan::kMostEntries).size(), 2);
  EXPECT_TRUE(carry_out().empty());
  open(3);
  EXPECT_FALSE(carry_out().empty());
}

TEST_F(ScanPlanTest, ReportsInVainAreUnwantedInTheEnd) {
  for (unsigned i = 0; i < ScanPlan::kMostVain; ++i) {
    EXPECT_TRUE(plan_.wants_reports(kJob));
    open(1, {kDevice, 50'000 + i});  // nowhere near each other
  }
  EXPECT_FALSE(plan_.wants_reports(kJob));
  EXPECT_TRUE(plan_.wants_reports(kJob));  // another try
  EXPECT_TRUE(plan_.wants_reports(kOther));
}

// Each folder takes as long as if it had not been listed.
TEST_F(ScanPlanTest, AMountThatRetainsNothingIsLeftAlone) {
  root_ = listing(1000);
  size_t listed = 0;
  for (unsigned inode = 1; inode < 20; ++inode) {
    open(inode);
    listed += carry_out().size();
  }
  EXPECT_LE(listed, 16);
  EXPECT_FALSE(plan_.wants_reports(kJob));
  open(500, {kDevice, 77});
  open(501, {kDevice, 77});
  EXPECT_TRUE(carry_out().empty());
  plan_.opened(kJob, {kDevice + 1, 1}, {kDevice + 1, 77}, 1'000'000, now_ns_);
  plan_.opened(kJob, {kDevice + 1, 2}, {kDevice + 1, 77}, 1'000'000, now_ns_);
  EXPECT_FALSE(carry_out().empty()) << "another mount";
}

// Most of what is listed ahead takes no time, and is not reported; what is reported came too soon.
TEST_F(ScanPlanTest, AMountIsNotJudgedByItsExceptions) {
  root_ = listing(2000);
  for (unsigned inode = 1; inode < 60; inode += inode < 3 ? 1 : 3) {
    open(inode);
    carry_out();
  }
  EXPECT_TRUE(plan_.wants_reports(kJob));
  open(1500);
  EXPECT_FALSE(carry_out().empty());
}

// As Python imports packages: subfolders in no order.
TEST_F(ScanPlanTest, FoldersInNoOrderAreNoWalk) {
  root_ = listing(1000);
  inside_ = listing(30, 5000);
  std::mt19937_64 random(5);
  size_t listed = 0;
  for (unsigned i = 0; i < 300; ++i) {
    const uint64_t folder = 1 + random() % 1000;
    open(folder);
    open(5000 + random() % 30, {kDevice, folder});
    listed += carry_out().size();
  }
  EXPECT_LE(listed, 200);
}

// Attributes have expired: a round trip instead of three.
TEST_F(ScanPlanTest, AMountThatRetainsSomethingIsHelped) {
  root_ = listing(1000);
  size_t listed = 0;
  for (unsigned inode = 1; inode < 500; ++inode) {
    open(inode, kRoot, kJob, inode < 3 ? 3'000'000 : 1'000'000);
    listed += carry_out().size();
  }
  EXPECT_GE(listed, 497);
}

TEST_F(ScanPlanTest, AWalkThatIsHelpedMayReport) {
  root_ = listing(5000);
  for (unsigned inode = 1, step = 1; inode < 5000; inode += step, step *= 2) {
    open(inode);  // beyond what is listed ahead
    carry_out();
    ASSERT_TRUE(plan_.wants_reports(kJob));
  }
}

TEST_F(ScanPlanTest, EndsWithItsLastSession) {
  open(1);
  open(2, kRoot, kOther);
  EXPECT_EQ(plan_.sessions(kRoot), (std::set{kJob, kOther}));
  plan_.remove_session(kJob);
  EXPECT_TRUE(plan_.scans(kRoot));
  plan_.remove_session(kOther);
  EXPECT_FALSE(plan_.scans(kRoot));
  EXPECT_TRUE(carry_out().empty());
  plan_.listed({kRoot, "", 0, kRoot.inode}, root_, 1, now_ns_);  // arrives late
  EXPECT_TRUE(plan_.sessions(kRoot).empty());
}

// Whatever is reported and listed, each folder is given out at most once, and little is held.
TEST_F(ScanPlanTest, NothingTwice) {
  std::mt19937_64 random(3);
  for (unsigned round = 0; round < 200; ++round) {
    ScanPlan plan;
    std::set<std::pair<FolderKey, std::string>> given;
    for (unsigned step = 0; step < 300; ++step) {
      const FolderKey parent{random() % 2, 1000 + random() % 3};
      plan.opened(SessionId{static_cast<uint32_t>(1 + random() % 3)},
                  {parent.device, random() % 60}, parent, random() % 4'000'000, step * 5'000'000);
      for (ScanPlan::Task task; random() % 4 != 0 && plan.next(&task);) {
        EXPECT_TRUE(given.emplace(task.base, task.path).second) << task.path;
        if (random() % 8 != 0) {
          plan.listed(task, listing(static_cast<unsigned>(random() % 40), random() % 1100),
                      random() % 50, step * 5'000'000);
        }
      }
    }
  }
}

TEST_F(ScanPlanTest, FoldersBeyondTheMostReplaceTheOldest) {
  for (uint64_t parent = 0; parent < 2 * ScanPlan::kMostScans; ++parent) {
    open(1, {kDevice, 10'000 + parent});
  }
  EXPECT_FALSE(plan_.scans({kDevice, 10'000}));
  EXPECT_TRUE(plan_.scans({kDevice, 10'000 + 2 * ScanPlan::kMostScans - 1}));
}

}  // namespace
}  // namespace sluice::policy
