// What is guessed from a few samples, for each way in which jobs name their records; and when
// nothing is.
#include "optimizer/samples/key_guess.h"

#include <gtest/gtest.h>
#include <lmdb.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "optimizer/samples/lmdb_records.h"
#include "tests/unit/lmdb_files.h"

namespace sluice::optimizer {
namespace {

using test::LmdbFile;
using test::Pairs;
using test::value_for;
using State = Guessing::State;
using KeyOf = std::function<std::string(uint64_t)>;

constexpr uint32_t kFile = 7;
using Indices = std::vector<uint64_t>;

std::string printed(const char* format, uint64_t number) {
  char text[64];
  snprintf(text, sizeof text, format, static_cast<unsigned>(number));
  return text;
}
KeyOf format(const char* text, uint64_t base = 0) {
  return [text, base](uint64_t i) { return printed(text, i + base); };
}
KeyOf integer(size_t bytes, bool big, uint64_t base = 0) {
  return [=](uint64_t i) {
    std::string key(bytes, '\0');
    for (size_t at = 0; at < bytes; ++at) {
      key[big ? bytes - 1 - at : at] = static_cast<char>((i + base) >> 8 * at);
    }
    return key;
  };
}

Indices some(uint64_t samples, size_t count, uint64_t seed = 1) {
  Indices all(samples);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), std::mt19937_64(seed));
  all.resize(std::min<size_t>(count, samples));
  return all;
}
Indices from_to(uint64_t first, uint64_t last) {
  Indices all(last - first);
  std::iota(all.begin(), all.end(), first);
  return all;
}

// The records of a real file, and where each key's value lies.
class Data {
 public:
  explicit Data(const std::vector<std::string>& keys, unsigned flags = 0) {
    Pairs pairs;
    for (const std::string& key : keys) pairs.emplace_back(key, value_for(key, 20 + key.size()));
    const LmdbFile file(pairs, flags);
    const std::atomic<bool> stop{false};
    LmdbListing listing = list_lmdb_records(file.path(), stop);
    EXPECT_TRUE(listing.records) << listing.why;
    if (listing.records) records = std::move(*listing.records);
    for (uint32_t i = 0; i < records.size(); ++i) by_key_[std::string(records.key(i))] = i;
  }

  std::vector<Extent> parts(const std::string& key) const {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return {};
    return {{records.offset(found->second), records.length(found->second), kFile}};
  }
  Observation seen(uint64_t index, const std::vector<std::string>& keys) const {
    Observation one{index, {}};
    for (const std::string& key : keys) {
      for (const Extent& part : parts(key)) one.parts.push_back(part);
    }
    return one;
  }
  std::vector<Observation> watch(const KeyOf& key, const Indices& indices) const {
    std::vector<Observation> all;
    for (const uint64_t i : indices) {
      all.push_back(seen(i, {key(i)}));
      EXPECT_FALSE(all.back().parts.empty()) << key(i);
    }
    return all;
  }
  Guessing guess(uint64_t samples, const std::vector<Observation>& seen) const {
    return guess_keys(records, kFile, samples, seen);
  }

  RecordList records;

 private:
  std::map<std::string, uint32_t> by_key_;
};

std::vector<std::string> keys(uint64_t samples, const KeyOf& key,
                              std::vector<std::string> others = {}) {
  for (uint64_t i = 0; i < samples; ++i) others.push_back(key(i));
  return others;
}

// The guess has that name, and every sample's extent is that of its key, or none.
void expect_guess(const Data& data, uint64_t samples, const std::vector<Observation>& seen,
                  const std::string& name, const KeyOf& key) {
  const Guessing got = data.guess(samples, seen);
  ASSERT_EQ(got.state, State::kGuessed);
  ASSERT_TRUE(got.guess);
  EXPECT_EQ(got.guess->name(), name);
  for (uint64_t i = 0; i < samples + 3; ++i) {
    const auto found = got.guess->parts(i);
    const auto expected = i < samples ? data.parts(key(i)) : std::vector<Extent>{};
    ASSERT_EQ(std::vector<Extent>(found.begin(), found.end()), expected) << "sample " << i;
  }
}
// All of `samples` samples have keys as `key` says; a few are watched.
void expect_guessed(uint64_t samples, const KeyOf& key, const std::string& name,
                    const Indices& indices, const std::vector<std::string>& others = {},
                    unsigned flags = 0) {
  SCOPED_TRACE(name);
  const Data data(keys(samples, key, others), flags);
  expect_guess(data, samples, data.watch(key, indices), name, key);
}

State state_of(const Data& data, uint64_t samples, const std::vector<Observation>& seen) {
  const Guessing got = data.guess(samples, seen);
  EXPECT_EQ(got.guess.has_value(), got.state == State::kGuessed);
  return got.state;
}

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
  // All of one length: nothing that was seen tells "%d" from "%04d", the keys do.
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

std::string with_name(uint64_t i) {
  return printed("%08u_", i) + std::to_string(i * 2654435761U % 10007) + "/name.jpg";
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

TEST(KeyGuess, MissingSamples) {
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

TEST(KeyGuess, RecordsThatAreNoSamples) {
  const KeyOf key = format("%04u");
  const Data data(keys(1000, key, {"__len__", "__keys__"}));
  const std::vector<Observation> seen = data.watch(key, some(1000, 8));
  // More samples than keys: the record after the last is nobody's.
  expect_guess(data, 1010, seen, "key %04d", key);
  expect_guess(data, 900, data.watch(key, some(900, 8)), "key %04d", key);
}

TEST(KeyGuess, FewAndEqualSamplesSayNothing) {
  const KeyOf key = format("%04u");
  const Data data(keys(1000, key));
  const std::vector<Observation> seen = data.watch(key, some(1000, kEnoughSeen - 1));
  EXPECT_EQ(state_of(data, 1000, {}), State::kWait);
  EXPECT_EQ(state_of(data, 1000, seen), State::kWait);
  std::vector<Observation> again;
  for (int i = 0; i < 3; ++i) again.insert(again.end(), seen.begin(), seen.end());
  EXPECT_EQ(state_of(data, 1000, again), State::kWait);
  again.push_back(data.watch(key, some(1000, kEnoughSeen)).back());
  EXPECT_EQ(state_of(data, 1000, again), State::kGuessed);
}

TEST(KeyGuess, ContradictionsEndIt) {
  const KeyOf key = format("%04u");
  const Data data(keys(1000, key));
  std::vector<Observation> seen = data.watch(key, some(1000, 100));
  ASSERT_EQ(state_of(data, 1000, seen), State::kGuessed);
  seen[50].parts = data.parts(key(seen[50].index + 1));
  EXPECT_EQ(state_of(data, 1000, seen), State::kNone);
}

TEST(KeyGuess, NoSchemeAtAll) {
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

TEST(KeyGuess, SingleDigitsAreInOrder) {
  expect_guessed(10, format("%u"), "key %d", some(10, 8));
  expect_guessed(12, format("%u"), "key %d", some(12, 8, 1));
  expect_guessed(12, format("%u"), "key %d", some(12, 12));
}

TEST(KeyGuess, WaitsWhileTwoHypothesesDiffer) {
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

TEST(KeyGuess, PartsOfAValueSayNothing) {
  const KeyOf key = format("%04u");
  const Data data(keys(1000, key));
  const std::vector<Observation> good = data.watch(key, some(1000, 20));
  for (const auto& spoil : std::vector<std::function<void(Extent&)>>{
           [](Extent& part) { part.length -= 1; },
           [](Extent& part) { part.length += 1; },
           [](Extent& part) { part.offset += 1; },
           [](Extent& part) { part.file += 1; },
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

TEST(KeyGuess, SamplesThatThereAreNot) {
  const KeyOf key = format("%04u");
  const Data data(keys(1000, key));
  std::vector<Observation> seen = data.watch(key, some(1000, 20));
  EXPECT_EQ(state_of(data, 0, seen), State::kNone);
  EXPECT_EQ(state_of(data, kMostGuessed + 1, seen), State::kNone);
  seen.push_back({1000, data.parts(key(5))});
  EXPECT_EQ(state_of(data, 1000, seen), State::kNone);
  EXPECT_EQ(state_of(Data({}), 1000, seen), State::kNone);
}

RecordList listed(const std::vector<std::pair<std::string, uint32_t>>& keys_and_lengths) {
  RecordList records(8192);
  uint64_t offset = 8192;
  for (const auto& [key, length] : keys_and_lengths) {
    EXPECT_TRUE(records.add(key, offset, length));
    offset += length + 8;
  }
  return records;
}
Observation seen_in(const RecordList& records, uint64_t index, uint32_t record) {
  return {index, {{records.offset(record), records.length(record), kFile}}};
}

TEST(KeyGuess, EmptyValuesAreNothingToRead) {
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

TEST(KeyGuess, NamesAreOneShortLine) {
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

TEST(KeyGuess, LaterObservations) {
  const KeyOf key = format("%04u");
  const Data data(keys(1000, key, {"__len__"}));
  const Guessing got = data.guess(1010, data.watch(key, some(1000, 20)));
  ASSERT_TRUE(got.guess);
  EXPECT_TRUE(got.guess->agrees(data.seen(77, {key(77)})));
  EXPECT_TRUE(got.guess->agrees(data.seen(77, {"__len__", key(77)})));
  EXPECT_FALSE(got.guess->agrees(data.seen(77, {key(78)})));
  EXPECT_FALSE(got.guess->agrees({77, {}}));
  EXPECT_TRUE(got.guess->agrees({1005, {}})) << "nothing was foretold";
}

// Long keys of one digit only: every place looks like the number.
TEST(KeyGuess, HostileKeys) {
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

TEST(KeyGuess, AMillionSamples) {
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
}  // namespace sluice::optimizer
