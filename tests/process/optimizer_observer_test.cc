// Following a mapping by its page table: with a table of our own, and with this process's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "optimizer/io/page_table.h"
#include "policy/streams/observer.h"
#include "tests/process/optimizer_client.h"

namespace sluice::optimizer {

using policy::Access;
using policy::IntervalSet;
using policy::ObservedStream;
using policy::Observer;
using policy::PageTable;
using policy::Range;
using policy::SessionId;
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBase = 0x7000'0000'0000;
constexpr uint64_t kMillisecond = 1'000'000;

class FakeTable : public PageTable {
 public:
  bool present(uint64_t begin, uint64_t end, std::vector<Range>* out) override {
    ++looks;
    bytes_looked_at += end - begin;
    if (gone) return false;
    for (const Range& piece : mapped.pieces_in({begin, end})) out->push_back(piece);
    return true;
  }
  IntervalSet mapped;
  bool gone = false;
  uint64_t looks = 0, bytes_looked_at = 0;
};

uint64_t sum(const std::vector<Access>& found) {
  uint64_t bytes = 0;
  for (const Access& access : found) bytes += access.length;
  return bytes;
}

TEST(Observer, ReportsWhatWasMappedSinceOnceAndInOrder) {
  FakeTable table;
  Observer observer(kBase, 16 * kMiB, 100 * kMiB, 7ULL << 32, SessionId{3}, 1);
  std::vector<Access> found;
  ASSERT_TRUE(observer.poll(table, {}, 1, &found));
  EXPECT_TRUE(found.empty());
  table.mapped.add({kBase, kBase + 65536});
  table.mapped.add({kBase + kMiB, kBase + kMiB + 65536});
  uint64_t now = observer.next_ns();
  ASSERT_TRUE(observer.poll(table, {}, now, &found));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, Access::Kind::kSeen);
  EXPECT_EQ(found[0].offset, 16 * kMiB);
  EXPECT_EQ(found[0].length, 65536u);
  EXPECT_EQ(found[0].reader, 7ULL << 32);
  EXPECT_EQ(found[0].session, SessionId{3});
  EXPECT_EQ(found[1].offset, 17 * kMiB);
  found.clear();
  table.mapped.add({kBase + 65536, kBase + 2 * 65536});
  ASSERT_TRUE(observer.poll(table, {}, now + kMillisecond, &found));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].offset, 16 * kMiB + 65536);
}

TEST(Observer, LooksNearTheStreamsAndNowAndThenEverywhere) {
  FakeTable table;
  Observer observer(kBase, 0, 1ULL << 40, 1, SessionId{1}, 1);
  const ObservedStream stream{500 * kMiB, 600 * kMiB, 300e6, true};
  std::vector<Access> found;
  observer.poll(table, {}, 1, &found);
  observer.spent(5 * kMillisecond, 2);  // a costly look everywhere is not repeated soon
  table.bytes_looked_at = 0;
  observer.poll(table, {&stream, 1}, 10 * kMillisecond, &found);
  EXPECT_LE(table.bytes_looked_at, 64 * kMiB);
  table.mapped.add({kBase + 500 * kMiB, kBase + 501 * kMiB});
  observer.poll(table, {&stream, 1}, 20 * kMillisecond, &found);
  EXPECT_EQ(sum(found), kMiB);
  // Far from any stream: found once it looks everywhere again.
  table.mapped.add({kBase + 900'000 * kMiB, kBase + 900'001 * kMiB});
  observer.poll(table, {&stream, 1}, 2'000 * kMillisecond, &found);
  EXPECT_EQ(sum(found), 2 * kMiB);
}

// Polls whenever the observer asks for it, up to `until`; each takes half a millisecond.
void poll_until(Observer* observer, FakeTable* table, uint64_t until, const ObservedStream& stream,
                std::vector<Access>* found) {
  while (observer->next_ns() <= until) {
    const uint64_t now = observer->next_ns();
    ASSERT_TRUE(observer->poll(*table, {&stream, 1}, now, found));
    observer->spent(kMillisecond / 2, now);
  }
}

TEST(Observer, FindsAReaderThatWentFarAheadBeforeItLooksEverywhere) {
  FakeTable table;
  Observer observer(kBase, 0, 4096 * kMiB, 1, SessionId{1}, kMillisecond);
  const ObservedStream stream{kMiB, 2 * kMiB, 200e6, true};
  std::vector<Access> found;
  table.mapped.add({kBase, kBase + kMiB});
  poll_until(&observer, &table, 10 * kMillisecond, stream, &found);
  ASSERT_EQ(sum(found), kMiB);
  table.mapped.add({kBase + 3000 * kMiB, kBase + 3001 * kMiB});
  poll_until(&observer, &table, 60 * kMillisecond, stream, &found);
  EXPECT_EQ(sum(found), 2 * kMiB);
}

TEST(Observer, FindsWhatIsBehindAllReadersWhenItLooksEverywhere) {
  FakeTable table;
  Observer observer(kBase, 0, 4096 * kMiB, 1, SessionId{1}, kMillisecond);
  const ObservedStream stream{3000 * kMiB, 3010 * kMiB, 200e6, true};
  std::vector<Access> found;
  poll_until(&observer, &table, 10 * kMillisecond, stream, &found);
  table.mapped.add({kBase + kMiB, kBase + 2 * kMiB});
  poll_until(&observer, &table, 60 * kMillisecond, stream, &found);
  EXPECT_TRUE(found.empty());
  poll_until(&observer, &table, 200 * kMillisecond, stream, &found);
  EXPECT_EQ(sum(found), kMiB);
}

TEST(Observer, LooksOftenAtFirstAndSeldomWhenNothingHappens) {
  FakeTable table;
  Observer observer(kBase, 0, 100 * kMiB, 1, SessionId{1}, 0);
  std::vector<Access> found;
  uint64_t now = 0, first_second = 0, tenth_minute = 0;
  while (now < 600'000 * kMillisecond) {
    observer.poll(table, {}, now, &found);
    observer.spent(20'000, now);
    if (now < 1000 * kMillisecond) ++first_second;
    if (now > 599'000 * kMillisecond) ++tenth_minute;
    now = std::max(observer.next_ns(), now + 1);
  }
  EXPECT_GE(first_second, 500u);
  EXPECT_LE(first_second, 1001u);
  EXPECT_LE(tenth_minute, 25u);
}

TEST(Observer, SpendsASmallShareOfTheTimeEvenIfLooksAreDear) {
  FakeTable table;
  Observer observer(kBase, 0, 100 * kMiB, 1, SessionId{1}, 0);
  const ObservedStream stream{10 * kMiB, 90 * kMiB, 300e6, true};
  std::vector<Access> found;
  uint64_t now = 0, spent = 0;
  while (now < 10'000 * kMillisecond) {
    observer.poll(table, {&stream, 1}, now, &found);
    now += 200'000;
    spent += 200'000;
    observer.spent(200'000, now);
    now = std::max(now, observer.next_ns());
  }
  EXPECT_LE(spent, now / 20);
}

TEST(Observer, ZappedPagesAreSeenAgain) {
  FakeTable table;
  Observer observer(kBase, 0, 100 * kMiB, 1, SessionId{1}, 1);
  std::vector<Access> found;
  table.mapped.add({kBase, kBase + kMiB});
  observer.poll(table, {}, 1, &found);
  EXPECT_EQ(sum(found), kMiB);
  observer.unmapped({0, kMiB});
  observer.poll(table, {}, 10 * kMillisecond, &found);
  EXPECT_EQ(sum(found), 2 * kMiB);
}

TEST(Observer, EndsWithItsProcess) {
  FakeTable table;
  table.gone = true;
  Observer observer(kBase, 0, 100 * kMiB, 1, SessionId{1}, 1);
  std::vector<Access> found;
  EXPECT_FALSE(observer.poll(table, {}, 1, &found));
}

class RealTable : public testing::TestWithParam<bool> {};

TEST_P(RealTable, SeesThisProcessTouchAMapping) {
  const bool no_scan = GetParam();
  if (!no_scan && !has_pagemap_scan()) GTEST_SKIP() << "the kernel has no PAGEMAP_SCAN";
  const test::TempFolder folder;
  const std::string path = folder.cold_file("data", 64 * kMiB);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto* map =
      static_cast<volatile char*>(mmap(nullptr, 64 * kMiB, PROT_READ, MAP_SHARED, fd.get(), 0));
  ASSERT_NE(map, MAP_FAILED);
  const auto base = reinterpret_cast<uint64_t>(map);
  const auto table = open_page_table(static_cast<uint32_t>(getpid()), no_scan);
  ASSERT_NE(table, nullptr);
  std::vector<Range> pieces;
  ASSERT_TRUE(table->present(base, base + 64 * kMiB, &pieces));
  EXPECT_TRUE(pieces.empty());
  static_cast<void>(map[40 * kMiB]);
  ASSERT_TRUE(table->present(base, base + 64 * kMiB, &pieces));
  IntervalSet seen;
  for (const Range& piece : pieces) {
    EXPECT_EQ(seen.add(piece), piece.length());
    EXPECT_GE(piece.begin, base);
    EXPECT_LE(piece.end, base + 64 * kMiB);
  }
  EXPECT_TRUE(seen.contains({base + 40 * kMiB, base + 40 * kMiB + 4096}));
  EXPECT_LE(seen.bytes(), 4 * kMiB);
  munmap(const_cast<char*>(map), 64 * kMiB);
}

INSTANTIATE_TEST_SUITE_P(ScanAndReads, RealTable, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Reads" : "Scan"; });

}  // namespace
}  // namespace sluice::optimizer
