// Where rows lie that are in the samples' order with something else between some of them.
#include "policy/samples/ordered_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace sluice::test {
namespace {

using policy::Extent;
using policy::FileId;
using policy::guess_ordered_rows;
using policy::Guessing;
using policy::kEnoughSeen;
using policy::Observation;
using State = Guessing::State;

constexpr uint64_t kRow = 130'000, kNode = 20'000, kRows = 2'000;

// Rows with a node of an index before each 40th, in files of `each` rows.
std::vector<Extent> laid_out(uint64_t each = kRows) {
  std::vector<Extent> rows;
  uint64_t at = 0;
  for (uint64_t i = 0; i < kRows; ++i) {
    if (i % each == 0) at = 2'048;
    if (i % 40 == 0) at += kNode;
    rows.push_back({at, kRow, FileId{static_cast<uint32_t>(1 + i / each)}});
    at += kRow;
  }
  return rows;
}

// `count` of the rows, each read with a node of the index.
std::vector<Observation> seen_of(const std::vector<Extent>& rows, size_t count) {
  std::vector<uint64_t> all(rows.size());
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), std::mt19937_64(3));
  std::vector<Observation> seen;
  for (size_t i = 0; i < count; ++i) {
    const Extent& row = rows[all[i]];
    seen.push_back({all[i], {{row.offset / 7, kNode, row.file}, row}});
  }
  return seen;
}

// Each guessed sample is where it is, within a fourth more; returns how many are guessed.
uint64_t expect_right(const Guessing& got, const std::vector<Extent>& rows) {
  uint64_t known = 0;
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const auto parts = got.guess->parts(i);
    if (parts.empty()) continue;
    ++known;
    EXPECT_EQ(parts.size(), 1U);
    EXPECT_TRUE(contains(parts[0], rows[i])) << i;
    EXPECT_LE(parts[0].length, kRow + kRow / 4) << i;
    EXPECT_TRUE(got.guess->agrees({i, {rows[i]}})) << i;
  }
  EXPECT_EQ(got.guess->is_partial(), known < rows.size());
  return known;
}

TEST(OrderedRows, AreBracketedMoreCloselyTheMoreIsSeen) {
  const auto rows = laid_out();
  uint64_t before = 0;
  for (const size_t count : {32U, 64U, 128U, 512U}) {
    const Guessing got = guess_ordered_rows(kRows, seen_of(rows, count));
    ASSERT_EQ(got.state, State::kGuessed) << count;
    const uint64_t known = expect_right(got, rows);
    EXPECT_GE(known, before) << count;
    EXPECT_LT(count == 32 ? known : 0, kRows * 9 / 10);
    before = known;
  }
  EXPECT_GT(before, kRows * 98 / 100);
}

TEST(OrderedRows, OfSeveralFilesAreNotGuessedAcrossTheirEnds) {
  const auto rows = laid_out(500);
  const Guessing got = guess_ordered_rows(kRows, seen_of(rows, 256));
  ASSERT_EQ(got.state, State::kGuessed);
  EXPECT_GT(expect_right(got, rows), kRows * 9 / 10);
}

TEST(OrderedRows, AreExactWhereNothingLiesBetween) {
  const std::vector<Observation> seen = {
      {0, {{100, 50'000, FileId{1}}}},     {3, {{150'100, 50'000, FileId{1}}}},
      {4, {{200'100, 50'000, FileId{1}}}}, {5, {{250'100, 50'000, FileId{1}}}},
      {6, {{300'100, 50'000, FileId{1}}}}, {7, {{350'100, 50'000, FileId{1}}}},
      {8, {{400'100, 50'000, FileId{1}}}}, {9, {{450'100, 50'000, FileId{1}}}},
  };
  const Guessing got = guess_ordered_rows(10, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  EXPECT_EQ(got.guess->parts(1)[0], (Extent{50'100, 50'000, FileId{1}}));
  EXPECT_EQ(got.guess->parts(2)[0], (Extent{100'100, 50'000, FileId{1}}));
  EXPECT_FALSE(got.guess->is_partial());
}

TEST(OrderedRows, ReadTogetherWithWhatIsBesideThemAreLeftOut) {
  auto rows = laid_out();
  auto seen = seen_of(rows, 256);
  for (size_t i = 0; i < seen.size(); i += 10) {
    Extent& row = seen[i].parts.back();
    seen[i].parts = {{row.offset - kNode, kRow + kNode, row.file}};
  }
  const Guessing got = guess_ordered_rows(kRows, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  EXPECT_GT(expect_right(got, rows), kRows * 9 / 10);
  for (const Observation& one : seen) EXPECT_TRUE(got.guess->agrees(one)) << one.index;
}

TEST(OrderedRows, WaitForEnough) {
  const auto rows = laid_out();
  EXPECT_EQ(guess_ordered_rows(kRows, seen_of(rows, kEnoughSeen - 1)).state, State::kWait);
}

TEST(OrderedRows, OfOtherSizesOrAnotherOrderAreNotGuessed) {
  auto rows = laid_out();
  const auto none = [](const std::vector<Extent>& some) {
    return guess_ordered_rows(kRows, seen_of(some, 200)).state == State::kNone;
  };
  auto other = rows;
  for (uint64_t i = 0; i < kRows; i += 3) other[i].length -= 1;
  EXPECT_TRUE(none(other));
  other = rows;
  std::shuffle(other.begin(), other.end(), std::mt19937_64(1));
  EXPECT_TRUE(none(other));
  other = rows;
  std::reverse(other.begin(), other.end());
  EXPECT_TRUE(none(other));
  other = laid_out(1);  // each in a file of its own, at the same offset
  for (uint64_t i = 0; i < kRows; ++i) other[i].file = FileId{static_cast<uint32_t>(1 + i % 2)};
  EXPECT_TRUE(none(other));
}

TEST(OrderedRows, ContradictionIsSeen) {
  const auto rows = laid_out();
  const Guessing got = guess_ordered_rows(kRows, seen_of(rows, 512));
  ASSERT_EQ(got.state, State::kGuessed);
  Extent elsewhere = rows[1000];
  elsewhere.offset += 10 * kRow;
  EXPECT_FALSE(got.guess->agrees({1000, {elsewhere}}));
}

}  // namespace
}  // namespace sluice::test
