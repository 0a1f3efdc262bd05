// Where rows lie, from a few that were watched: exactly, or by the pages that were touched.
#include "policy/samples/row_guess.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace sluice::test {
namespace {

using policy::Extent;
using policy::FileId;
using policy::guess_rows;
using policy::Guessing;
using policy::kEnoughSeen;
using policy::Observation;
using State = Guessing::State;

constexpr FileId kFile{3};
constexpr uint64_t kAround = 64 << 10;

Extent extent(uint64_t begin, uint64_t end) {
  return {begin, static_cast<uint32_t>(end - begin), kFile};
}

struct Array {
  uint64_t header = 0, row = 0, rows = 0;
  uint64_t size() const { return header + row * rows; }
  Extent of(uint64_t index) const {
    return extent(header + index * row, header + (index + 1) * row);
  }
  // What a touch of each of the row's pages maps at most, or less where it is not in memory.
  Extent pages_of(uint64_t index, uint64_t around = kAround) const {
    const Extent exact = of(index);
    const uint64_t begin = exact.offset / around * around;
    const uint64_t end = (exact.offset + exact.length + around - 1) / around * around;
    return extent(begin, std::min(end, size()));
  }
};

std::vector<uint64_t> some(uint64_t samples, size_t count, uint64_t seed = 1) {
  std::vector<uint64_t> all(samples);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), std::mt19937_64(seed));
  all.resize(std::min<size_t>(count, samples));
  return all;
}

// All samples are guessed, each as that extent.
template <typename Of>
void expect_all(const Guessing& got, uint64_t samples, Of of) {
  ASSERT_EQ(got.state, State::kGuessed);
  for (uint64_t i = 0; i < samples; ++i) {
    ASSERT_EQ(got.guess->parts(i).size(), 1U) << i;
    ASSERT_EQ(got.guess->parts(i)[0], of(i)) << i << ", " << got.guess->name();
  }
  EXPECT_TRUE(got.guess->parts(samples).empty());
}

TEST(RowGuess, RowsThatWereRead) {
  const Array array{128, 3000, 500};
  std::vector<Observation> seen;
  for (const uint64_t i : some(500, 8)) seen.push_back({i, {array.of(i)}});
  const Guessing got = guess_rows(array.size(), kFile, 500, seen);
  expect_all(got, 500, [&](uint64_t i) { return array.of(i); });
  EXPECT_EQ(got.guess->name(), "3000 bytes at 128 + i * 3000");
  // A dataset of the first rows only, or of every third.
  expect_all(guess_rows(array.size(), kFile, 100,
                        std::vector<Observation>{{0, {array.of(0)}},
                                                 {9, {array.of(9)}},
                                                 {2, {array.of(2)}},
                                                 {33, {array.of(33)}},
                                                 {4, {array.of(4)}},
                                                 {50, {array.of(50)}},
                                                 {60, {array.of(60)}},
                                                 {97, {array.of(97)}}}),
             100, [&](uint64_t i) { return array.of(i); });
  seen.clear();
  for (const uint64_t i : some(150, 8)) seen.push_back({i, {array.of(3 * i + 1)}});
  expect_all(guess_rows(array.size(), kFile, 150, seen), 150,
             [&](uint64_t i) { return array.of(3 * i + 1); });
}

TEST(RowGuess, AHeaderThatWasReadWithTheFirst) {
  const Array array{2048, 777, 300};
  std::vector<Observation> seen;
  for (const uint64_t i : some(300, 12)) seen.push_back({i, {array.of(i)}});
  seen[0].parts.insert(seen[0].parts.begin(), extent(0, 96));
  seen.push_back({0, {extent(0, 2048 + 777)}});
  expect_all(guess_rows(array.size(), kFile, 300, seen), 300,
             [&](uint64_t i) { return array.of(i); });
}

// Each sample opens the file anew, and of some no page was looked at.
TEST(RowGuess, AHeaderThatIsReadForEachSample) {
  const Array array{128, 40000, 400};
  std::vector<Observation> seen;
  for (const uint64_t i : some(400, 30)) {
    seen.push_back({i, {extent(0, 4096)}});
    if (i % 3 != 0) seen.back().parts.push_back(array.pages_of(i));
  }
  expect_all(guess_rows(array.size(), kFile, 400, seen), 400,
             [&](uint64_t i) { return array.of(i); });
}

TEST(RowGuess, SeveralRowsToASample) {
  const Array images{100, 784, 200};
  const Array labels{images.size(), 1, 200};
  std::vector<Observation> seen;
  for (const uint64_t i : some(200, 9)) seen.push_back({i, {labels.of(i), images.of(i)}});
  const Guessing got = guess_rows(labels.size(), kFile, 200, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  for (uint64_t i = 0; i < 200; ++i) {
    const auto parts = got.guess->parts(i);
    ASSERT_EQ(std::vector<Extent>(parts.begin(), parts.end()),
              (std::vector<Extent>{labels.of(i), images.of(i)}));
  }
}

TEST(RowGuess, PagesThatWereTouched) {
  for (const uint64_t around : {uint64_t{4096}, uint64_t{16384}, kAround}) {
    for (const Array& array :
         {Array{128, 150528, 1000}, Array{0, 3072, 5000}, Array{192, 602112, 40},
          Array{64, 20000, 2048}, Array{4096, 40960, 300}}) {
      std::vector<Observation> seen;
      for (const uint64_t i : some(array.rows, 10, around)) {
        seen.push_back({i, {array.pages_of(i, around)}});
      }
      const Guessing got = guess_rows(array.size(), kFile, array.rows, seen);
      ASSERT_EQ(got.state, State::kGuessed) << array.row << ", " << around;
      // A header of a whole multiple of the samples' number more or less cannot be distinguished.
      for (uint64_t i = 0; i < array.rows; ++i) {
        const Extent part = got.guess->parts(i)[0];
        const uint64_t end = part.offset + part.length;
        ASSERT_LE(part.offset, array.of(i).offset + kAround);
        ASSERT_GE(end + kAround, array.of(i).offset + array.row);
        ASSERT_LE(part.length, array.row + kAround);
      }
      if (array.header % 64 == 0 && array.header < array.rows) {
        expect_all(got, array.rows, [&](uint64_t i) { return array.of(i); });
      }
    }
  }
}

TEST(RowGuess, RowsInAnotherOrder) {
  const Array array{128, 150528, 1000};
  const std::vector<uint64_t> order = some(1000, 1000, 7);
  std::vector<Observation> exact;
  std::vector<Observation> pages;
  for (const uint64_t i : some(1000, 20)) {
    exact.push_back({i, {array.of(order[i])}});
    pages.push_back({i, {array.pages_of(order[i])}});
  }
  EXPECT_EQ(guess_rows(array.size(), kFile, 1000, exact).state, State::kNone);
  EXPECT_EQ(guess_rows(array.size(), kFile, 1000, pages).state, State::kNone);
}

TEST(RowGuess, RowsOfManySizes) {
  std::mt19937_64 draw(5);
  std::vector<uint64_t> at{128};
  for (int i = 0; i < 1000; ++i) at.push_back(at.back() + 80000 + draw() % 40000);
  std::vector<Observation> pages;
  std::vector<Observation> exact;
  for (const uint64_t i : some(1000, 20)) {
    exact.push_back({i, {extent(at[i], at[i + 1])}});
    pages.push_back({i, {extent(at[i] / 4096 * 4096, (at[i + 1] + 4095) / 4096 * 4096)}});
  }
  EXPECT_EQ(guess_rows(at.back(), kFile, 1000, exact).state, State::kNone);
  EXPECT_EQ(guess_rows(at.back(), kFile, 1000, pages).state, State::kNone);
}

TEST(RowGuess, WhatSaysNothing) {
  const Array array{128, 3000, 500};
  std::vector<Observation> seen;
  for (const uint64_t i : some(500, kEnoughSeen - 1)) seen.push_back({i, {array.of(i)}});
  EXPECT_EQ(guess_rows(array.size(), kFile, 500, {}).state, State::kWait);
  for (int i = 0; i < 3; ++i) seen.insert(seen.end(), seen.begin(), seen.begin() + 4);
  seen.push_back({499, {}});
  EXPECT_EQ(guess_rows(array.size(), kFile, 500, seen).state, State::kWait) << "few, often";
  EXPECT_EQ(guess_rows(array.size(), kFile, 0, seen).state, State::kNone);
  EXPECT_EQ(guess_rows(array.size(), kFile, UINT64_MAX, seen).state, State::kNone);
  // Each sample reads the same, or all of the file.
  std::vector<Observation> same;
  std::vector<Observation> all;
  for (uint64_t i = 0; i < 20; ++i) {
    same.push_back({i, {array.of(7)}});
    all.push_back({i, {extent(0, array.size())}});
  }
  EXPECT_EQ(guess_rows(array.size(), kFile, 500, same).state, State::kWait);
  EXPECT_EQ(guess_rows(array.size(), kFile, 500, all).state, State::kWait);
}

// A file that was cut while it was read, and offsets at the end of what there can be.
TEST(RowGuess, RowsBeyondTheFile) {
  const Array array{128, 3000, 500};
  std::vector<Observation> seen;
  for (const uint64_t i : some(200, 8)) seen.push_back({i, {array.of(i)}});
  const Guessing got = guess_rows(array.of(300).offset + 1, kFile, 500, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  EXPECT_EQ(got.guess->parts(299).size(), 1U);
  EXPECT_EQ(got.guess->parts(300)[0].length, 1U);
  EXPECT_TRUE(got.guess->parts(301).empty());
  for (Observation& one : seen) one.parts[0].offset += UINT64_MAX - (1ULL << 40);
  EXPECT_NE(guess_rows(array.size(), kFile, 500, seen).state, State::kGuessed);
  EXPECT_NE(guess_rows(UINT64_MAX, kFile, 1ULL << 24, seen).state, State::kWait);
}

TEST(RowGuess, LaterSamples) {
  const Array array{128, 150528, 1000};
  std::vector<Observation> seen;
  for (const uint64_t i : some(1000, 10)) seen.push_back({i, {array.pages_of(i)}});
  const Guessing got = guess_rows(array.size(), kFile, 1000, seen);
  ASSERT_TRUE(got.guess);
  EXPECT_TRUE(got.guess->is_finer());
  EXPECT_TRUE(got.guess->agrees({77, {array.pages_of(77)}}));
  EXPECT_TRUE(got.guess->agrees({77, {array.of(77)}}));
  EXPECT_FALSE(got.guess->agrees({77, {array.pages_of(80)}}));
  EXPECT_TRUE(got.guess->agrees({77, {extent(0, 4096)}})) << "its header alone was read";
  EXPECT_FALSE(got.guess->agrees({77, {extent(0, 4096), array.pages_of(80)}}));
}

}  // namespace
}  // namespace sluice::test
