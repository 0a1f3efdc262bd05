// What the tests of key guesses share: ways to name records, real files of such records, and
// samples of them that were watched.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/io/lmdb_records.h"
#include "policy/samples/key_guess.h"
#include "policy/samples/sample_set.h"
#include "tests/unit/lmdb_files.h"

namespace sluice::test {

using optimizer::LmdbListing;
using policy::Extent;
using policy::FileId;
using policy::guess_keys;
using policy::Guessing;
using policy::Observation;
using policy::RecordList;
using State = Guessing::State;
using KeyOf = std::function<std::string(uint64_t)>;

inline constexpr FileId kFile{7};
using Indices = std::vector<uint64_t>;

inline std::string printed(const char* format, uint64_t number) {
  char text[64];
  snprintf(text, sizeof text, format, static_cast<unsigned>(number));
  return text;
}
inline KeyOf format(const char* text, uint64_t base = 0) {
  return [text, base](uint64_t i) { return printed(text, i + base); };
}
inline KeyOf integer(size_t bytes, bool big, uint64_t base = 0) {
  return [=](uint64_t i) {
    std::string key(bytes, '\0');
    for (size_t at = 0; at < bytes; ++at) {
      key[big ? bytes - 1 - at : at] = static_cast<char>((i + base) >> 8 * at);
    }
    return key;
  };
}

inline Indices some(uint64_t samples, size_t count, uint64_t seed = 1) {
  Indices all(samples);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), std::mt19937_64(seed));
  all.resize(std::min<size_t>(count, samples));
  return all;
}
inline Indices from_to(uint64_t first, uint64_t last) {
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
    LmdbListing listing = optimizer::list_lmdb_records(file.path(), stop);
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
    policy::merge_neighbours(&one.parts);
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

inline std::vector<std::string> keys(uint64_t samples, const KeyOf& key,
                                     std::vector<std::string> others = {}) {
  for (uint64_t i = 0; i < samples; ++i) others.push_back(key(i));
  return others;
}

// The guess has that name, and every sample's extent is that of its key, or none.
inline void expect_guess(const Data& data, uint64_t samples, const std::vector<Observation>& seen,
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
inline void expect_guessed(uint64_t samples, const KeyOf& key, const std::string& name,
                           const Indices& indices, const std::vector<std::string>& others = {},
                           unsigned flags = 0) {
  SCOPED_TRACE(name);
  const Data data(keys(samples, key, others), flags);
  expect_guess(data, samples, data.watch(key, indices), name, key);
}

inline State state_of(const Data& data, uint64_t samples, const std::vector<Observation>& seen) {
  const Guessing got = data.guess(samples, seen);
  EXPECT_EQ(got.guess.has_value(), got.state == State::kGuessed);
  return got.state;
}

inline std::string with_name(uint64_t i) {
  return printed("%08u_", i) + std::to_string(i * 2654435761U % 10007) + "/name.jpg";
}

inline RecordList listed(const std::vector<std::pair<std::string, uint32_t>>& keys_and_lengths) {
  RecordList records(8192);
  uint64_t offset = 8192;
  for (const auto& [key, length] : keys_and_lengths) {
    EXPECT_TRUE(records.add(key, offset, length));
    offset += length + 8;
  }
  return records;
}
inline Observation seen_in(const RecordList& records, uint64_t index, uint32_t record) {
  return {index, {{records.offset(record), records.length(record), kFile}}};
}

}  // namespace sluice::test
