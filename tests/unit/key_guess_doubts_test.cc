// When nothing is guessed, or not of all samples, and that no guess is wrong.
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>

#include "tests/unit/key_guess_data.h"

namespace sluice::test {
namespace {

using policy::FileId;
using policy::kEnoughSeen;
using policy::kMostGuessed;

// A thousand records with keys of four digits, and `others`; a job that reads some of them.
struct FourDigits {
  explicit FourDigits(uint64_t watched, std::vector<std::string> others = {})
      : data(keys(1000, key, std::move(others))), seen(data.watch(key, some(1000, watched))) {}
  const KeyOf key = format("%04u");
  const Data data;
  std::vector<Observation> seen;
};

TEST(KeyGuessDoubts, MissingSamples) {
  const KeyOf key = format("%04u");
  std::vector<std::string> some_keys;
  for (uint64_t i = 0; i < 1000; ++i) {
    if (i < 400 || i % 10 != 3) some_keys.push_back(key(i));
  }
  const Data data(some_keys);
  // Until a sample beyond the gap is seen, the i-th record may be meant as well.
  std::vector<Observation> seen = data.watch(key, some(400, 50));
  EXPECT_EQ(state_of(data, 1000, seen), State::kWait);
  seen.push_back(data.seen(404, {key(404)}));
  expect_guess(data, 1000, seen, "key %04d", key);
  // Was read, and nothing came of it.
  seen.push_back({413, {}});
  expect_guess(data, 1000, seen, "key %04d", key);
  seen.push_back({414, {}});
  EXPECT_EQ(state_of(data, 1000, seen), State::kNone);
}

TEST(KeyGuessDoubts, RecordsThatAreNoSamples) {
  const auto [key, data, seen] = FourDigits(8, {"__len__", "__keys__"});
  // More samples than keys: the record after the last is no sample's.
  expect_guess(data, 1010, seen, "key %04d", key);
  expect_guess(data, 900, data.watch(key, some(900, 8)), "key %04d", key);
}

TEST(KeyGuessDoubts, FewAndEqualSamplesSayNothing) {
  const auto [key, data, seen] = FourDigits(kEnoughSeen - 1);
  EXPECT_EQ(state_of(data, 1000, {}), State::kWait);
  EXPECT_EQ(state_of(data, 1000, seen), State::kWait);
  std::vector<Observation> again;
  for (int i = 0; i < 3; ++i) again.insert(again.end(), seen.begin(), seen.end());
  EXPECT_EQ(state_of(data, 1000, again), State::kWait);
  again.push_back(data.watch(key, some(1000, kEnoughSeen)).back());
  EXPECT_EQ(state_of(data, 1000, again), State::kGuessed);
}

TEST(KeyGuessDoubts, ContradictionsEndIt) {
  auto [key, data, seen] = FourDigits(100);
  ASSERT_EQ(state_of(data, 1000, seen), State::kGuessed);
  seen[50].parts = data.parts(key(seen[50].index + 1));
  EXPECT_EQ(state_of(data, 1000, seen), State::kNone);
}

TEST(KeyGuessDoubts, NoSchemeAtAll) {
  const KeyOf key = format("%04u");
  const Data data(keys(1000, key));
  const Indices order = some(1000, 1000, 9);
  EXPECT_EQ(
      state_of(data, 1000, data.watch([&](uint64_t i) { return key(order[i]); }, some(1000, 20))),
      State::kNone);
  EXPECT_EQ(state_of(data, 500, data.watch([&](uint64_t i) { return key(2 * i); }, some(500, 20))),
            State::kNone);
  EXPECT_EQ(state_of(data, 1000, data.watch([&](uint64_t) { return key(5); }, some(1000, 20))),
            State::kNone);
}

TEST(KeyGuessDoubts, SingleDigitsAreInOrder) {
  expect_guessed(10, format("%u"), "key %d", some(10, 8));
  expect_guessed(12, format("%u"), "key %d", some(12, 8, 1));
  expect_guessed(12, format("%u"), "key %d", some(12, 12));
}

TEST(KeyGuessDoubts, WaitsWhileTwoHypothesesDiffer) {
  // Both "5" and "05" are there.
  const KeyOf padded = format("%02u");
  const Data data(keys(100, padded, keys(100, format("%u"))));
  std::vector<Observation> seen = data.watch(padded, from_to(10, 30));
  EXPECT_EQ(state_of(data, 100, seen), State::kWait);
  std::vector<Observation> other = seen;
  seen.push_back(data.seen(5, {"05"}));
  expect_guess(data, 100, seen, "key %02d", padded);
  other.push_back(data.seen(5, {"5"}));
  expect_guess(data, 100, other, "key %d", format("%u"));
}

TEST(KeyGuessDoubts, PartsOfAValueSayNothing) {
  const auto [key, data, good] = FourDigits(20);
  for (const auto& spoil : std::vector<std::function<void(Extent&)>>{
           [](Extent& part) { part.length -= 1; },
           [](Extent& part) { part.length += 1; },
           [](Extent& part) { part.offset += 1; },
           [](Extent& part) { part.file = FileId{number(kFile) + 1}; },
           [](Extent& part) {
             part = {UINT64_MAX - 1, UINT32_MAX, kFile};
           },
           [](Extent& part) { part.length = 0; },
       }) {
    std::vector<Observation> seen = good;
    spoil(seen[7].parts[0]);
    EXPECT_EQ(state_of(data, 1000, seen), State::kNone);
    for (Observation& one : seen) one.parts = good[&one - seen.data()].parts;
    for (Observation& one : seen) spoil(one.parts[0]);
    EXPECT_EQ(state_of(data, 1000, seen), State::kNone);
  }
}

TEST(KeyGuessDoubts, SamplesThatThereAreNot) {
  auto [key, data, seen] = FourDigits(20);
  EXPECT_EQ(state_of(data, 0, seen), State::kNone);
  EXPECT_EQ(state_of(data, kMostGuessed + 1, seen), State::kNone);
  seen.push_back({1000, data.parts(key(5))});
  EXPECT_EQ(state_of(data, 1000, seen), State::kNone);
  EXPECT_EQ(state_of(Data({}), 1000, seen), State::kNone);
}

TEST(KeyGuessDoubts, EmptyValuesAreNothingToRead) {
  std::vector<std::pair<std::string, uint32_t>> pairs;
  for (uint32_t i = 0; i < 100; ++i) pairs.emplace_back(printed("%03u", i), i % 10 == 4 ? 0 : 50);
  const RecordList records = listed(pairs);
  std::vector<Observation> seen;
  for (uint32_t i = 0; i < 40; ++i) {
    seen.push_back(i % 10 == 4 ? Observation{i, {}} : seen_in(records, i, i));
  }
  const Guessing got = guess_keys(records, kFile, 100, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  EXPECT_TRUE(got.guess->parts(94).empty());
  ASSERT_EQ(got.guess->parts(95).size(), 1U);
  EXPECT_EQ(got.guess->parts(95)[0], seen_in(records, 95, 95).parts[0]);
}

TEST(KeyGuessDoubts, NamesAreOneShortLine) {
  std::vector<std::pair<std::string, uint32_t>> pairs;
  for (uint32_t i = 0; i < 100; ++i) {
    pairs.emplace_back("a\n" + printed("%03u", i) + std::string(100, '\0'), 50);
  }
  const RecordList records = listed(pairs);
  std::vector<Observation> seen;
  for (uint32_t i = 0; i < 20; ++i) seen.push_back(seen_in(records, i, i));
  const Guessing got = guess_keys(records, kFile, 100, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  EXPECT_TRUE(got.guess->name().starts_with("key a\\x0a%03d\\x00\\x00")) << got.guess->name();
  EXPECT_TRUE(got.guess->name().ends_with("\\x00...")) << got.guess->name();
}

TEST(KeyGuessDoubts, LaterObservations) {
  const auto [key, data, seen] = FourDigits(20, {"__len__"});
  const Guessing got = data.guess(1010, seen);
  ASSERT_TRUE(got.guess);
  EXPECT_TRUE(got.guess->agrees(data.seen(77, {key(77)})));
  EXPECT_TRUE(got.guess->agrees(data.seen(77, {"__len__", key(77)})));
  EXPECT_FALSE(got.guess->agrees(data.seen(77, {key(78)})));
  EXPECT_FALSE(got.guess->agrees({77, {}}));
  EXPECT_TRUE(got.guess->agrees({1005, {}})) << "nothing was foretold";
}

// Whatever else lies in the file and whichever samples are missing: the truth is never excluded,
// and a record that is foretold for a sample that has one is that sample's.
TEST(KeyGuessDoubts, NeverAnotherSamplesRecord) {
  const KeyOf truths[] = {format("%u"),     format("%02u"),       format("%03u", 1),
                          format("0%u"),    format("%u0", 1),     format("00%02u"),
                          integer(4, true), integer(4, false, 1), with_name,
                          format("a%u"),    format("1%02u")};
  const KeyOf junk[] = {format("%u"), format("%02u"), format("%03u"), format("z%u"),
                        integer(4, true)};
  std::mt19937_64 draw(3);
  size_t guessed = 0;
  for (int round = 0; round < 3000; ++round) {
    const size_t which = draw() % std::size(truths);
    const KeyOf& truth = truths[which];
    const uint64_t samples = 10 + draw() % 300;
    const uint64_t missing = draw() % 3 == 0 ? draw() % 20 + 2 : UINT64_MAX;
    std::map<std::string, uint32_t> sorted;
    for (uint64_t i = 0; i < samples; ++i) {
      if (i % missing != 1 || &truth == &truths[8]) sorted[truth(i)] = 0;
    }
    // Among records that are found by their place nothing else may lie.
    const KeyOf& other = junk[draw() % std::size(junk)];
    const uint64_t others = draw() % 2 == 0 ? samples : draw() % 20;
    for (uint64_t i = 0; i < others && &truth != &truths[8]; ++i) {
      sorted[other(others == samples ? i : draw() % (2 * samples))] = 0;
    }
    RecordList records(8192);
    for (auto& [key, record] : sorted) {
      record = static_cast<uint32_t>(records.size());
      ASSERT_TRUE(records.add(key, 8192 + records.size() * 100, 50));
    }
    std::vector<Observation> seen;
    for (const uint64_t i : some(samples, kEnoughSeen + draw() % 10, draw())) {
      if (sorted.count(truth(i)) != 0) seen.push_back(seen_in(records, i, sorted[truth(i)]));
    }
    const Guessing got = guess_keys(records, kFile, samples, seen);
    ASSERT_NE(got.state, State::kNone) << "round " << round << ", truth " << which;
    guessed += got.guess ? 1 : 0;
    for (uint64_t i = 0; got.guess && i < samples; ++i) {
      const auto parts = got.guess->parts(i);
      const auto own = sorted.find(truth(i));
      if (own == sorted.end() || parts.empty()) continue;
      ASSERT_EQ(parts[0], seen_in(records, i, own->second).parts[0])
          << "round " << round << ", truth " << which << ", " << got.guess->name();
    }
  }
  EXPECT_GT(guessed, 1500U);
}

// Long keys of one digit only: every place looks like the number.
TEST(KeyGuessDoubts, HostileKeys) {
  for (const char fill : {'0', '1', '9'}) {
    std::vector<std::pair<std::string, uint32_t>> pairs;
    std::vector<Observation> seen;
    for (size_t length = 1; length <= 511; ++length) {
      pairs.emplace_back(std::string(length, fill), 10);
    }
    const RecordList records = listed(pairs);
    for (uint32_t i = 0; i < 511; ++i) seen.push_back(seen_in(records, i, i));
    const Guessing got = guess_keys(records, kFile, 511, seen);
    ASSERT_EQ(got.state, State::kGuessed);
    EXPECT_EQ(got.guess->name(), "record i");
  }
}

TEST(KeyGuessDoubts, AMillionSamples) {
  constexpr uint32_t kSamples = 1'300'000;
  RecordList records(8192);
  for (uint32_t i = 0; i < kSamples; ++i) {
    ASSERT_TRUE(records.add(printed("image-%09u", i), 8192 + i * 110'000ULL, 100'000));
  }
  std::vector<Observation> seen;
  for (const uint64_t i : some(kSamples, 64)) {
    seen.push_back(seen_in(records, i, static_cast<uint32_t>(i)));
  }
  const Guessing got = guess_keys(records, kFile, kSamples, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  EXPECT_EQ(got.guess->name(), "key image-%09d");
  for (uint32_t i = 0; i < kSamples; i += 1000) {
    ASSERT_EQ(got.guess->parts(i).size(), 1U);
    ASSERT_EQ(got.guess->parts(i)[0], seen_in(records, i, i).parts[0]);
  }
}

}  // namespace
}  // namespace sluice::test
