// What samples are made of.
#include <gtest/gtest.h>

#include <vector>

#include "policy/samples/sample_book.h"

namespace sluice::test {
namespace {

using policy::Extent;
using policy::FileId;
using policy::SampleSet;
using policy::Source;

TEST(SampleSet, NeighboursAreJoinedAndTheRestStaysInOrder) {
  SampleSet set(10);
  set.learn(3, {{100, 50, FileId{7}},
                {150, 50, FileId{7}},
                {120, 10, FileId{7}},
                {0, 5, FileId{7}},
                {5, 5, FileId{8}}});
  const auto parts = set.parts(3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0], (Extent{100, 100, FileId{7}}));
  EXPECT_EQ(parts[1], (Extent{0, 5, FileId{7}}));
  EXPECT_EQ(parts[2], (Extent{5, 5, FileId{8}}));
  EXPECT_EQ(set.bytes(3), 110U);
  EXPECT_EQ(set.known(), 1U);
}

TEST(SampleSet, LearningAnewReplaces) {
  SampleSet set(10);
  set.learn(9, {{0, 5, FileId{1}}, {100, 5, FileId{1}}});
  set.learn(9, {{50, 7, FileId{2}}});
  ASSERT_EQ(set.parts(9).size(), 1U);
  EXPECT_EQ(set.parts(9)[0], (Extent{50, 7, FileId{2}}));
  set.learn(9, {});
  EXPECT_TRUE(set.parts(9).empty());
  EXPECT_EQ(set.known(), 0U);
  set.learn(10, {{0, 1, FileId{1}}});  // there is no such sample
  EXPECT_TRUE(set.parts(10).empty());
  EXPECT_TRUE(set.parts(UINT64_MAX).empty());
}

TEST(SampleSet, ASampleOfTooManyPiecesIsNotPlannedWith) {
  SampleSet set(1);
  std::vector<Extent> parts;
  for (uint64_t i = 0; i <= SampleSet::kMaxParts; ++i) parts.push_back({i * 100, 10, FileId{1}});
  set.learn(0, parts);
  EXPECT_TRUE(set.parts(0).empty());
}

TEST(SampleSet, WhatWasSeenCountsMost) {
  const std::vector<Extent> one = {{0, 5, FileId{1}}};
  const std::vector<Extent> other = {{10, 5, FileId{1}}};
  const auto after = [&](Source first, Source second) {
    SampleSet set(1);
    set.learn(0, one, first);
    set.learn(0, other, second);
    return set.parts(0)[0] == other[0];
  };
  using enum Source;
  EXPECT_TRUE(after(kSeen, kSeen));
  for (const Source first : {kStored, kDeclared, kGuessed}) EXPECT_TRUE(after(first, kSeen));
  for (const Source second : {kStored, kDeclared, kGuessed}) EXPECT_FALSE(after(kSeen, second));
  for (const Source first : {kStored, kDeclared}) EXPECT_TRUE(after(first, kDeclared));
  EXPECT_TRUE(after(kGuessed, kDeclared));
  for (const Source first : {kStored, kDeclared, kGuessed}) EXPECT_FALSE(after(first, kGuessed));
}

TEST(SampleSet, NewsAreWhatWasUnknownBefore) {
  SampleSet set(10);
  set.learn(0, {{0, 5, FileId{1}}}, Source::kDeclared);
  set.learn(1, {{5, 5, FileId{1}}}, Source::kStored);
  set.learn(2, {{20, 5, FileId{1}}}, Source::kGuessed);
  EXPECT_EQ(set.news(), 0U);
  set.learn(0, {{0, 5, FileId{1}}});
  set.learn(1, {{5, 5, FileId{1}}});
  EXPECT_EQ(set.news(), 0U);
  EXPECT_EQ(set.source(0), Source::kDeclared);
  EXPECT_EQ(set.source(1), Source::kSeen);
  set.learn(2, {{20, 5, FileId{1}}});  // a guess that was right is known from now on
  set.learn(3, {{30, 5, FileId{1}}});
  set.learn(3, {{30, 5, FileId{1}}});
  set.learn(3, {{31, 5, FileId{1}}});
  EXPECT_EQ(set.news(), 3U);
  EXPECT_EQ(set.source(3), Source::kSeen);
}

TEST(SampleSet, GuessesAreForgottenTogether) {
  SampleSet set(10);
  for (uint64_t i = 0; i < 8; ++i) set.learn(i, {{i * 10, 5, FileId{1}}}, Source::kGuessed);
  set.learn(5, {{50, 5, FileId{1}}});
  set.learn(6, {{61, 5, FileId{1}}});
  set.drop(Source::kGuessed);
  EXPECT_EQ(set.known(), 2U);
  EXPECT_TRUE(set.parts(7).empty());
  EXPECT_EQ(set.parts(6)[0], (Extent{61, 5, FileId{1}}));
}

}  // namespace
}  // namespace sluice::test
