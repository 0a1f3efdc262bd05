// A store of packs in a temporary folder, and what the tests do with it.
#pragma once

#include <mutex>
#include <optional>

#include "optimizer/packs/pack_store.h"
#include "tests/unit/pack_data.h"

namespace sluice::optimizer::test {

inline std::string path_of(uint64_t number) { return "/data/" + std::to_string(number); }

inline PackStore::Found find(PackStore* store, uint64_t number, uint64_t length,
                             uint64_t state = 0) {
  return store->find({path_of(number), 0, length}, version(length, state));
}

inline bool add(PackStore* store, uint64_t number, uint64_t length, uint64_t state = 0) {
  const UniqueFd from = memory(contents(number, length, state));
  return store->add({path_of(number), 0, length}, version(length, state), from.get());
}

// Whether the sample is there, with its bytes as they were.
inline bool has(PackStore* store, uint64_t number, uint64_t length, uint64_t state = 0) {
  const PackStore::Found found = find(store, number, length, state);
  if (!found) return false;
  const UniqueFd to = memory({});
  EXPECT_EQ(store->copy(found, to.get()), 0);
  EXPECT_EQ(all_of(to.get()), contents(number, length, state));
  return true;
}

class PackStores : public ::testing::Test {
 protected:
  static constexpr uint64_t kLength = 50'000;  // of a sample: 20 make a pack of 1 MiB, and a bit
  static constexpr uint64_t kEach = 21;

  PackStores() {
    settings_.base = root_.path;
    settings_.most_bytes = 1 << 30;
    settings_.pack_bytes = 1 << 20;
    settings_.least_free_percent = 0;  // the test's disk may be as full as it is
    settings_.say = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      said_.push_back(line);
    };
    reopen();
  }

  void reopen() {
    store_.reset();
    store_.emplace();
    std::string reason;
    ASSERT_TRUE(store_->open(settings_, &reason)) << reason;
  }
  // So many packs of kEach samples, numbered from `first` on.
  void fill(uint64_t packs, uint64_t first = 0, uint64_t state = 0) {
    const uint64_t before = store_->view().written_bytes;
    for (uint64_t i = 0; i < packs * kEach; ++i) {
      ASSERT_TRUE(add(&*store_, first + i, kLength, state));
    }
    ASSERT_GE(store_->view().written_bytes - before, packs << 20);
  }
  bool has(uint64_t number, uint64_t state = 0) {
    return test::has(&*store_, number, kLength, state);
  }
  uint64_t count(uint64_t first, uint64_t end, uint64_t state = 0) {
    uint64_t found = 0;
    for (uint64_t i = first; i < end; ++i) found += has(i, state) ? 1 : 0;
    return found;
  }
  fs::path folder() const { return packs_folder(root_.path); }
  fs::path pack(uint32_t number) const { return folder() / pack_name(number); }
  uint64_t files() const {  // with the lock
    return static_cast<uint64_t>(
        std::distance(fs::directory_iterator(folder()), fs::directory_iterator()));
  }

  TemporaryFolder root_;
  PackStore::Settings settings_;
  std::optional<PackStore> store_;
  std::mutex mutex_;
  std::vector<std::string> said_;
};

}  // namespace sluice::optimizer::test
