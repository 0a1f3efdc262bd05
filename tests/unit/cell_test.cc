// Cell words and transitions: what a word preserves while another part of it changes, and that a
// closer never takes a pinned cell, under threads.
#include "preload/handler/cell.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace sluice::preload {
namespace {

TEST(CellWord, PartsAreIndependent) {
  std::mt19937_64 random(7);
  CellWord word;
  uint32_t pins = 0;
  uint32_t trip = 0;
  auto state = CellState::kClosed;
  for (int i = 0; i < 100000; ++i) {
    const uint64_t before = word.identity();
    switch (random() % 3) {
      case 0:
        state = static_cast<CellState>(random() % 6);
        word = word.with_state(state);
        EXPECT_NE(word.identity(), before) << "a change of state is a new version";
        break;
      case 1:
        pins = static_cast<uint32_t>(random() % (kMaxPins + 1));
        word = word.with_pins(pins);
        EXPECT_EQ(word.identity(), before) << "pins are no part of the identity";
        break;
      default:
        trip = static_cast<uint32_t>(random() & 0xffffff);
        word = word.with_last_trip(trip);
        EXPECT_EQ(word.identity(), before);
    }
    ASSERT_EQ(word.state(), state);
    ASSERT_EQ(word.pins(), pins);
    ASSERT_EQ(word.last_trip(), trip);
  }
}

TEST(CellWord, ZeroIsClosedAndUnpinned) {
  const CellWord word;
  EXPECT_EQ(word.state(), CellState::kClosed);
  EXPECT_EQ(word.pins(), 0U);
  EXPECT_FALSE(word.accessible());
}

TEST(Cell, FinishKeepsPinsThatArriveMeanwhile) {
  Cell cell;
  CellWord word = cell.load();
  while (!cell.swap(word, word.with_state(CellState::kOpening))) {
  }
  word = cell.load();
  while (!cell.swap(word, word.with_pins(3))) {
  }
  cell.finish(CellState::kOpen);
  EXPECT_EQ(cell.load().pins(), 3U);
  EXPECT_TRUE(cell.load().accessible());
}

// Pinners and closers on one cell: while a pin is held the state must stay open.
TEST(Cell, NoCloserTakesAPinnedCell) {
  Cell cell;
  CellWord word = cell.load();
  while (!cell.swap(word, word.with_state(CellState::kOpen))) {
  }
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> closed{0};
  std::atomic<uint64_t> broken{0};
  std::thread closer([&] {
    while (!stop.load()) {
      CellWord now = cell.load();
      if (now.state() != CellState::kOpen || now.pins() != 0) continue;
      if (!cell.swap(now, now.with_state(CellState::kClosing))) continue;
      closed.fetch_add(1);
      cell.finish(CellState::kOpen);
    }
  });
  std::vector<std::thread> pinners;
  pinners.reserve(3);
  for (int i = 0; i < 3; ++i) {
    pinners.emplace_back([&] {
      for (int round = 0; round < 200000; ++round) {
        CellWord now = cell.load();
        while (now.state() != CellState::kOpen || !cell.swap(now, now.with_pins(now.pins() + 1))) {
          now = cell.load();
        }
        if (cell.load().state() != CellState::kOpen) broken.fetch_add(1);
        now = cell.load();
        while (!cell.swap(now, now.with_pins(now.pins() - 1))) {
        }
      }
    });
  }
  for (auto& pinner : pinners) pinner.join();
  stop.store(true);
  closer.join();
  EXPECT_EQ(broken.load(), 0U);
  EXPECT_EQ(cell.load().pins(), 0U);
}

}  // namespace
}  // namespace sluice::preload
