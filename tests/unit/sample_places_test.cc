// Places that are known roughly, or of files that are not open yet.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "optimizer/plan/scheduler.h"
#include "optimizer/samples/sample_book.h"

namespace sluice::test {
namespace {

using optimizer::Extent;
using optimizer::PlannedRead;
using optimizer::Range;
using optimizer::SampleBook;
using optimizer::SampleSet;
using optimizer::Scheduler;
using optimizer::Source;

constexpr uint64_t kMiB = 1 << 20;

TEST(SamplePlaces, PagesAroundAPlaceSayLessThanThePlace) {
  const std::array known{Extent{5000, 3000, 1}};
  EXPECT_TRUE(is_coarser(std::array{Extent{4096, 4096, 1}}, known));
  EXPECT_FALSE(is_coarser(std::array{Extent{4100, 4096, 1}}, known)) << "no pages";
  EXPECT_FALSE(is_coarser(std::array{Extent{4096, 3000, 1}}, known)) << "not all of it";
  EXPECT_FALSE(is_coarser(std::array{Extent{4096, 4096, 2}}, known)) << "of another file";
  EXPECT_FALSE(is_coarser(std::array{Extent{4096, 4096, 1}, Extent{65536, 4096, 1}}, known));
}

TEST(SamplePlaces, WhatWasToldStaysWhereOnlyItsPagesWereSeen) {
  SampleBook book;
  const uint32_t set = book.use(1, "set", 10);
  const auto see = [&](uint64_t index, const Extent& part) {
    book.begin(1, 77, set, index);
    book.part(77, set, index, part);
    book.end(77, set, index);
    return book.parts(set, index)[0];
  };
  const Extent told{5000, 3000, 1};
  const Extent pages{4096, 4096, 1};
  for (const Source source : {Source::kTold, Source::kKept}) {
    const uint64_t index = source == Source::kTold ? 3 : 4;
    ASSERT_TRUE(book.locate(1, set, index, {told}, source));
    EXPECT_EQ(see(index, pages), told);
    EXPECT_EQ(see(index, {9000, 100, 1}), (Extent{9000, 100, 1})) << "it is elsewhere now";
  }
  EXPECT_EQ(see(5, pages), pages) << "of this one no more is known";
}

TEST(SamplePlaces, WhatAGuessMadeFinerIsForgottenWithIt) {
  SampleSet set(10);
  set.learn(1, {{4096, 4096, 1}});
  set.learn(2, {{8192, 4096, 1}});
  set.refine(1, {{5000, 3000, 1}});
  set.refine(3, {{5000, 3000, 1}});  // nothing was seen of it
  EXPECT_EQ(set.parts(1)[0], (Extent{5000, 3000, 1}));
  EXPECT_EQ(set.known(), 2U);
  set.forget_guesses();
  EXPECT_TRUE(set.parts(1).empty());
  EXPECT_EQ(set.known(), 1U);
}

TEST(SamplePlaces, OnlyWhoReadsAShuffledDatasetIsAskedForPages) {
  SampleBook book;
  const uint32_t set = book.use(1, "set", 100);
  ASSERT_EQ(book.use(2, "set", 100), set);
  book.use(3, "other", 100);
  EXPECT_FALSE(book.wants_places(1)) << "without an order";
  std::vector<uint32_t> order(100);
  std::iota(order.begin(), order.end(), 0);
  ASSERT_TRUE(book.publish(1, set, 0, 0, order));
  EXPECT_FALSE(book.wants_places(1)) << "streams see such an order coming";
  for (uint32_t i = 0; i < 100; ++i) order[i] = i * 37 % 100;
  ASSERT_TRUE(book.publish(1, set, 0, 0, order));
  EXPECT_TRUE(book.wants_places(1));
  EXPECT_TRUE(book.wants_places(2)) << "its worker";
  EXPECT_FALSE(book.wants_places(3));
  for (uint32_t i = 0; i < 96; ++i) book.locate(1, set, i, {{i * 4096, 4096, 1}}, Source::kTold);
  EXPECT_FALSE(book.wants_places(1)) << "enough is known";
}

struct World : optimizer::Residency {
  uint64_t cached(uint32_t /*file*/, Range /*range*/) override { return 0; }
  bool known(uint32_t /*file*/) const override { return true; }
  bool awaited(uint32_t /*file*/) const override { return opening; }
  bool opening = true;
};

// The order came while the file was being opened: its first samples were never fetched.
TEST(SamplePlaces, AnOrderThatCameBeforeItsFileWasOpen) {
  World world;
  SampleBook book;
  Scheduler scheduler(&world, &book);
  scheduler.set_budget(1 << 30);
  scheduler.add_session(1, {}, true, 0);
  scheduler.set_mount(9, 128 << 10, 8);
  scheduler.add_file(1, 8 * kMiB, 9);
  const uint32_t set = book.use(1, "set", 8);
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(book.locate(1, set, i, {{i * kMiB, kMiB, 1}}, Source::kTold));
  }
  ASSERT_TRUE(book.publish(1, set, 0, 0, std::vector<uint32_t>{3, 1, 2, 0, 7, 5, 6, 4}));
  std::vector<PlannedRead> reads;
  scheduler.plan(1000, &reads);
  EXPECT_TRUE(reads.empty());
  world.opening = false;
  scheduler.file_usable(1, true);
  scheduler.plan(2000, &reads);
  ASSERT_FALSE(reads.empty());
  EXPECT_EQ(reads.front().range.begin, 3 * kMiB);
}

}  // namespace
}  // namespace sluice::test
