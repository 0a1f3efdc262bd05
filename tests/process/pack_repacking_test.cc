// Packs that are given up because little of them is used any more, and threads that all want
// something of the packs at once.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/process/pack_store_data.h"

namespace sluice::optimizer {
namespace {

using namespace test;
using PackRepacking = PackStores;

TEST_F(PackRepacking, WhatIsStillUsedMovesOn) {
  fill(1);
  const uint64_t left = kEach / 2 - 1;
  for (uint64_t i = left; i < kEach; ++i) store_->drop({path_of(i), 0, kLength});
  EXPECT_EQ(store_->view().samples, left);
  EXPECT_EQ(count(0, left), left) << "there until it has moved";
  EXPECT_TRUE(fs::exists(pack(0)));
  for (uint64_t i = 100; store_->view().written_bytes < 2 << 20; ++i) {
    ASSERT_TRUE(add(&*store_, i, kLength));
  }
  EXPECT_FALSE(fs::exists(pack(0)));
  EXPECT_EQ(count(0, kEach), left);
  EXPECT_EQ(store_->view().packs, 1U);
  reopen();
  EXPECT_EQ(count(0, left), left);
}

TEST_F(PackRepacking, HalfIsEnoughToStay) {
  fill(1);
  for (uint64_t i = 0; i < kEach / 2; ++i) store_->drop({path_of(i), 0, kLength});
  fill(1, 100);
  EXPECT_TRUE(fs::exists(pack(0)));
  EXPECT_EQ(store_->view().packs, 2U);
}

TEST_F(PackRepacking, WhatIsDroppedMeanwhileDoesNotComeBack) {
  fill(1);
  for (uint64_t i = 5; i < kEach; ++i) store_->drop({path_of(i), 0, kLength});  // 5 move
  store_->drop({path_of(0), 0, kLength});
  ASSERT_TRUE(add(&*store_, 1, kLength, 1));  // another version of one
  ASSERT_TRUE(add(&*store_, 200, kLength));
  store_->drop({path_of(200), 0, kLength});
  fill(1, 100);
  EXPECT_FALSE(has(0));
  EXPECT_TRUE(has(1, 1));
  EXPECT_FALSE(has(200));
  EXPECT_EQ(count(2, 5), 3U);
  EXPECT_FALSE(fs::exists(pack(0)));
}

TEST_F(PackRepacking, PacksOfNoUseGoAtOnce) {
  fill(2);
  for (uint64_t i = 0; i < kEach; ++i) store_->drop({path_of(i), 0, kLength});
  EXPECT_FALSE(fs::exists(pack(0)));
  EXPECT_EQ(store_->view().packs, 1U);
}

TEST_F(PackRepacking, ContinuesWhereThereIsNoRoom) {
  fill(3);
  settings_.most_bytes = store_->view().bytes;
  reopen();
  for (uint64_t pack = 0; pack < 3; ++pack) {
    for (uint64_t i = 7; i < kEach; ++i) store_->drop({path_of(pack * kEach + i), 0, kLength});
  }
  EXPECT_LT(store_->view().packs, 3U);
  EXPECT_LT(store_->view().bytes, settings_.most_bytes);
  for (uint64_t pack = 0; pack < 3; ++pack) EXPECT_EQ(count(pack * kEach, pack * kEach + 7), 7U);
}

TEST_F(PackRepacking, ADamagedPackIsRemoved) {
  fill(1);
  std::vector<char> bytes = read_file(pack(0));
  bytes[bytes.size() - (kEach - 2) * kLength] ^= 1;  // the third sample
  write_file(pack(0), bytes);
  for (uint64_t i = 5; i < kEach; ++i) store_->drop({path_of(i), 0, kLength});
  EXPECT_EQ(store_->view().damaged_packs, 1U);
  EXPECT_FALSE(fs::exists(pack(0)));
  fill(1, 100);  // those before the damage have moved
  EXPECT_EQ(count(0, 5), 2U);
}

TEST_F(PackRepacking, ASparsePackOfAnEarlierRunIsMended) {
  fill(1);
  const std::vector<char> old = read_file(pack(0));
  for (uint64_t i = 0; i < kEach - 4; ++i) ASSERT_TRUE(add(&*store_, i, kLength, 1));
  fill(1, 100);  // and the first pack's rest with it
  ASSERT_FALSE(fs::exists(pack(0)));
  // As if the optimizer had been killed before.
  const uint64_t packs = store_->view().packs;
  write_file(pack(0), old);
  fs::remove(folder() / pack_name(static_cast<uint32_t>(packs)));
  reopen();
  fill(2, 500);
  EXPECT_FALSE(fs::exists(pack(0)));
}

// Each sample has one content for each version, and readers know which they ask for: whatever the
// others do meanwhile, they get that or nothing.
TEST_F(PackRepacking, ManyThreadsAtOnce) {
  constexpr uint64_t kSamples = 150;
  constexpr uint64_t kSteps = 2500;
  constexpr int kThreads = 4;
  settings_.most_bytes = 6 << 20;
  reopen();
  std::atomic<uint64_t> wrong = 0, hits = 0;
  const auto work = [&](uint64_t seed) {
    Random random(seed);
    for (uint64_t step = 0; step < kSteps; ++step) {
      const uint64_t number = random.below(kSamples);
      const uint64_t state = random.below(8) == 0 ? 1 : 0;
      const uint64_t length = 1000 + mixed(number) % 60'000;
      const uint32_t what = random.below(100);
      if (what < 1) {
        if (const PackStore::Found found = find(&*store_, number, length, state)) {
          store_->damaged(found);
        }
      } else if (what < 3) {
        store_->drop({path_of(number), 0, length});
      } else if (what < 4) {
        store_->flush();
      } else if (what < 30) {
        const UniqueFd from = memory(contents(number, length, state));
        store_->add({path_of(number), 0, length}, version(length, state), from.get());
      } else if (const PackStore::Found found = find(&*store_, number, length, state)) {
        const UniqueFd to = memory({});
        const bool good = store_->copy(found, to.get()) == 0 &&
                          all_of(to.get()) == contents(number, length, state);
        ++(good ? hits : wrong);
      }
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, 1 + i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(hits, 100U);
  const PackStore::View view = store_->view();
  EXPECT_GT(view.written_bytes, 6U << 20);
  EXPECT_EQ(view.read_samples, hits);
  // The files are what the index says, and the next run agrees.
  uint64_t bytes = 0, packs = 0;
  for (const auto& file : fs::directory_iterator(folder())) {
    if (file.path().extension() != ".pack") continue;
    ++packs;
    bytes += file.file_size();
  }
  EXPECT_EQ(packs, view.packs);
  EXPECT_EQ(bytes, view.bytes);
  settings_.most_bytes = 1 << 30;
  reopen();
  EXPECT_EQ(store_->view().damaged_packs, 0U);
}

}  // namespace
}  // namespace sluice::optimizer
