// Which records are read together, and how long.
#include "policy/samples/record_groups.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::policy {
namespace {

constexpr SessionId kJob{1}, kOther{2};
constexpr DatasetId kSet{1}, kSecondSet{2};
constexpr FileId kFile{1}, kSecond{2};

// Records of 100 bytes, so that neighbours share pages.
Extent record(uint64_t number, FileId file = kFile) { return {number * 100, 100, file}; }

std::vector<Extent> records(uint64_t first, uint64_t end, FileId file = kFile) {
  std::vector<Extent> all;
  for (uint64_t number = first; number < end; ++number) all.push_back(record(number, file));
  return all;
}

TEST(RecordGroups, FindThoseOfOneOfThem) {
  RecordGroups groups;
  groups.add(kJob, kSet, records(0, 4));
  groups.add(kJob, kSet, records(4, 8));
  EXPECT_EQ(groups.find(kJob, record(0)), records(0, 4)) << "the next group shares its page";
  EXPECT_EQ(groups.find(kJob, record(6)),
            (std::vector<Extent>{record(6), record(4), record(5), record(7)}))
      << "that record first";
  EXPECT_TRUE(groups.find(kJob, Extent{400, 50, kFile}).empty()) << "another record";
  EXPECT_TRUE(groups.find(kJob, record(8)).empty());
  EXPECT_TRUE(groups.find(kJob, Extent{0, 4096, kSecond}).empty());
  EXPECT_TRUE(groups.find(kOther, record(3)).empty());
}

TEST(RecordGroups, ALaterGroupTakesOnlyItsRecords) {
  RecordGroups groups;
  groups.add(kJob, kSet, records(0, 4));
  groups.add(kJob, kSet, records(2, 3));
  EXPECT_EQ(groups.find(kJob, record(2)), records(2, 3));
  EXPECT_EQ(groups.find(kJob, record(0)), (std::vector<Extent>{record(0), record(1), record(3)}));
}

TEST(RecordGroups, WhatWasTakenWaitsUntilItIsPassed) {
  RecordGroups groups;
  groups.add(kJob, kSet, records(0, 4));
  const auto taken = [&groups] {
    std::vector<Extent> all;
    groups.for_each_taken([&all](const Extent& one) { all.push_back(one); });
    return all;
  };
  EXPECT_TRUE(taken().empty());
  groups.take(kJob, records(1, 4));
  EXPECT_TRUE(groups.find(kJob, record(1)).empty()) << "it is on its way";
  EXPECT_EQ(groups.find(kJob, record(0)), records(0, 1));
  groups.pass(kJob, record(2));
  EXPECT_EQ(taken(), (std::vector<Extent>{record(1), record(3)}));
}

TEST(RecordGroups, WhatWasTakenIsFoundByItsBytes) {
  RecordGroups groups;
  groups.add(kJob, kSet, records(0, 4));
  groups.add(kOther, kSet, records(0, 4));
  groups.add(kJob, kSet, records(0, 4, kSecond));
  groups.take(kJob, records(0, 4));
  groups.take(kJob, records(0, 4, kSecond));
  EXPECT_EQ(groups.taken_in(kJob, kFile, 150, 201), records(1, 3));
  EXPECT_EQ(groups.taken_in(kJob, kFile, 100, 200), records(1, 2)) << "not those beside it";
  EXPECT_EQ(groups.taken_in(kJob, kFile, 399, 4096), records(3, 4));
  EXPECT_TRUE(groups.taken_in(kJob, kFile, 400, 4096).empty());
  EXPECT_TRUE(groups.taken_in(kOther, kFile, 0, 4096).empty()) << "of that session none was taken";
  EXPECT_EQ(groups.taken_in(kFile, 150, 201), records(1, 3)) << "of any session";
  groups.pass(kJob, record(1));
  EXPECT_EQ(groups.taken_in(kJob, kFile, 150, 201), records(2, 3));
}

TEST(RecordGroups, BytesThatWaitAreThoseOfTheSessionWithMost) {
  RecordGroups groups;
  const std::vector<Extent> large = {{0, 4096, kFile}, {4096, 5000, kFile}, {9096, 100, kFile}};
  groups.add(kJob, kSet, large);
  groups.add(kOther, kSet, large);
  EXPECT_EQ(groups.taken_bytes(kSet), 0U);
  groups.take(kJob, large);
  groups.take(kJob, large);
  EXPECT_EQ(groups.taken_bytes(kSet), 4U * 4096) << "whole pages, and once";
  groups.take(kOther, {large.data(), 1});
  EXPECT_EQ(groups.taken_bytes(kSet), 4U * 4096);
  EXPECT_EQ(groups.taken_bytes(kSecondSet), 0U);
  groups.pass(kJob, large[1]);
  groups.pass(kJob, large[1]);
  EXPECT_EQ(groups.taken_bytes(kSet), 2U * 4096);
  groups.add(kJob, kSet, {large.data(), 1});
  EXPECT_EQ(groups.taken_bytes(kSet), 4096U) << "it is in a group that was not taken";
  groups.remove_session(kJob);
  EXPECT_EQ(groups.taken_bytes(kSet), 4096U) << "the other's";
  groups.remove_file(kFile);
  EXPECT_EQ(groups.taken_bytes(kSet), 0U);
}

TEST(RecordGroups, NothingIsLeftOfWhatWasRemoved) {
  RecordGroups groups;
  groups.add(kJob, kSet, records(0, 4));
  groups.add(kJob, kSecondSet, records(0, 4, kSecond));
  groups.add(kOther, kSet, records(0, 4));
  groups.pass(kJob, record(1));
  EXPECT_TRUE(groups.find(kJob, record(1)).empty());
  EXPECT_EQ(groups.find(kJob, record(0)).size(), 3U);
  groups.remove_dataset(kJob, kSet);
  EXPECT_FALSE(groups.find(kJob, record(0, kSecond)).empty());
  groups.remove_file(kSecond);
  EXPECT_TRUE(groups.find(kJob, record(0, kSecond)).empty());
  EXPECT_FALSE(groups.empty());
  groups.remove_session(kOther);
  EXPECT_TRUE(groups.empty());
}

}  // namespace
}  // namespace sluice::policy
