// What is guessed from a few samples, for each way in which jobs name their records.
#include "policy/samples/key_guess.h"

#include <gtest/gtest.h>
#include <lmdb.h>

#include "tests/unit/key_guess_data.h"

namespace sluice::test {
namespace {

TEST(KeyGuess, PaddedDecimals) {
  expect_guessed(2000, format("%08u"), "key %08d", some(2000, 8));
  expect_guessed(2000, format("%08u", 1), "key %08d from 1", some(2000, 8));
  expect_guessed(300, format("image-%09u", 1), "key image-%09d from 1", some(300, 8));
  expect_guessed(300, format("%05u.jpg"), "key %05d.jpg", some(300, 8));
  expect_guessed(300, format("train/%06u/x"), "key train/%06d/x", from_to(0, 8));
  expect_guessed(1500, format("%04u"), "key %04d", from_to(1000, 1010), {"__len__", "__keys__"});
}

TEST(KeyGuess, UnpaddedDecimals) {
  expect_guessed(1500, format("%u"), "key %d", some(1500, 8));
  expect_guessed(1500, format("%u", 1), "key %d from 1", some(1500, 8));
  expect_guessed(1500, format("%u.jpg"), "key %d.jpg", from_to(0, 8), {"__len__"});
  // All of one length: nothing that was seen distinguishes "%d" from "%04d", the keys do.
  expect_guessed(1500, format("%u"), "key %d", from_to(1000, 1010));
}

TEST(KeyGuess, NumbersThatOutgrowTheirField) {
  expect_guessed(1200, format("%02u"), "key %02d", some(1200, 40));
  expect_guessed(1200, format("%03u"), "key %03d", from_to(990, 1010));
  expect_guessed(1200, format("%02u"), "key %02d", from_to(1000, 1010));
}

TEST(KeyGuess, DigitsThatAreNoPartOfTheNumber) {
  expect_guessed(1200, format("0%u"), "key 0%d", some(1200, 60));
  expect_guessed(1200, format("%u0"), "key %d0", some(1200, 60));
  expect_guessed(1200, format("20240100%05u"), "key 202401%07d", some(1200, 20));
  expect_guessed(100, format("7-%u-7"), "key 7-%d-7", some(100, 20));
}

TEST(KeyGuess, IntegerKeys) {
  for (const uint64_t base : {0, 1}) {
    const std::string from = base == 0 ? "" : " from 1";
    expect_guessed(1000, integer(4, true, base), "big-endian 4-byte key" + from, some(1000, 8));
    expect_guessed(1000, integer(8, true, base), "big-endian 8-byte key" + from, some(1000, 8));
    expect_guessed(1000, integer(4, false, base), "little-endian 4-byte key" + from, some(1000, 8));
    expect_guessed(1000, integer(8, false, base), "little-endian 8-byte key" + from, some(1000, 8),
                   {}, MDB_INTEGERKEY);
  }
}

TEST(KeyGuess, PlaceInTheOrder) {
  expect_guessed(1000, with_name, "record i", some(1000, 8));
  const auto letters = [](uint64_t i) { return printed("n%05u_", i * 3) + value_for("a", i % 5); };
  expect_guessed(1000, letters, "record i + 2", some(1000, 8), {"__keys__", "__len__"});
  expect_guessed(1000, with_name, "record i", some(1000, 8), {"__keys__", "__len__"});
}

TEST(KeyGuess, SeveralRecordsToASample) {
  const KeyOf image = format("image-%09u", 1);
  const KeyOf label = format("label-%09u", 1);
  std::vector<std::string> all = keys(600, image, keys(600, label));
  all.emplace_back("num-samples");
  const Data data(all);
  std::vector<Observation> seen;
  for (const uint64_t i : some(600, 10)) seen.push_back(data.seen(i, {label(i), image(i)}));
  const Guessing got = data.guess(600, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  EXPECT_EQ(got.guess->name(), "key label-%09d from 1, key image-%09d from 1");
  for (uint64_t i = 0; i < 600; ++i) {
    const auto found = got.guess->parts(i);
    ASSERT_EQ(std::vector<Extent>(found.begin(), found.end()),
              data.seen(i, {label(i), image(i)}).parts);
  }
  EXPECT_TRUE(got.guess->parts(600).empty());

  // One that is read for every sample.
  for (Observation& one : seen) one.parts.push_back(data.parts("num-samples")[0]);
  const Guessing again = data.guess(600, seen);
  ASSERT_EQ(again.state, State::kGuessed);
  EXPECT_EQ(again.guess->name(),
            "key label-%09d from 1, key image-%09d from 1, always key num-samples");
  ASSERT_EQ(again.guess->parts(3).size(), 3U);
  EXPECT_EQ(again.guess->parts(3)[2], data.parts("num-samples")[0]);

  // Labels of some samples come from elsewhere.
  for (size_t i = 0; i < seen.size(); ++i) seen[i].parts.resize(i % 3 == 0 ? 1 : 2);
  EXPECT_EQ(state_of(data, 600, seen), State::kWait) << "seven of one shape";
  for (const uint64_t i : some(600, 20, 2)) seen.push_back(data.seen(i, {label(i), image(i)}));
  EXPECT_EQ(state_of(data, 600, seen), State::kNone);
}

TEST(KeyGuess, WhatIsReadWhenTheFileIsOpened) {
  const KeyOf key = format("%06u");
  const Data data(keys(500, key, {"__len__", "__keys__"}));
  std::vector<Observation> seen = data.watch(key, some(500, 8));
  // The first samples of two workers.
  for (const uint64_t i : {3, 40}) {
    Observation first{i, {{0, 152, kFile}, {4096, 152, kFile}}};
    for (const Extent& part : data.seen(i, {"__len__", "__keys__", key(i)}).parts) {
      first.parts.push_back(part);
    }
    seen.push_back(first);
  }
  expect_guess(data, 500, seen, "key %06d", key);
  // But not another sample's record, whose own may be missing too.
  std::vector<Observation> more = seen;
  more.push_back(data.seen(5, {key(6), key(5)}));
  EXPECT_EQ(state_of(data, 500, more), State::kNone);
  more = seen;
  more.push_back(data.seen(5, {"__len__", "__keys__"}));
  EXPECT_EQ(state_of(data, 500, more), State::kNone);
}

}  // namespace
}  // namespace sluice::test
