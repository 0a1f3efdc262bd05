// A session's history: points that stay bounded, epochs that are distinguished, and a reader that
// never believes half a change.
#include "optimizer/sessions/history.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "policy/planner/scheduler.h"
#include "protocol/history_io.h"

namespace sluice::test {
namespace {

using optimizer::SessionHistory;
using policy::Access;
using policy::FileId;
using policy::Range;
using policy::Scheduler;
using policy::SessionId;
using protocol::EpochField;
using protocol::History;
using protocol::HistoryCopy;
using protocol::HistoryField;
using protocol::HistoryPoint;

constexpr uint64_t kStart = 5'000'000'000;
constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kMiB = 1 << 20;

class Recorded : public testing::Test {
 protected:
  Recorded() { history_.begin(shared_.get(), kStart); }

  const HistoryCopy& seen() {
    EXPECT_TRUE(protocol::copy(*shared_, *copy_));
    return *copy_;
  }
  static uint64_t of(const HistoryPoint& point, HistoryField field) {
    return point[static_cast<size_t>(field)];
  }
  uint64_t of(uint64_t epoch, EpochField field) const {
    return copy_->epoch[epoch][static_cast<size_t>(field)];
  }
  static HistoryPoint with_budget(uint64_t budget) {
    HistoryPoint point{};
    point[static_cast<size_t>(HistoryField::budget_bytes)] = budget;
    return point;
  }

  std::unique_ptr<History> shared_ = std::make_unique<History>();
  std::unique_ptr<HistoryCopy> copy_ = std::make_unique<HistoryCopy>();
  SessionHistory history_;
};

TEST_F(Recorded, NothingAtFirst) {
  EXPECT_EQ(seen().points, 0U);
  EXPECT_EQ(seen().epochs, 0U);
  EXPECT_TRUE(history_.due(kStart));
}

TEST_F(Recorded, APointHasItsTimeAndWhatEpochsCounted) {
  history_.streamed(100, 60, 30, kStart);
  history_.streamed(300, 200, 40, kStart + 1);
  history_.count(EpochField::sample_late, 3, kStart + 2);
  history_.add(with_budget(7), kStart + 5 * kMillisecond);
  EXPECT_FALSE(history_.due(kStart + 14 * kMillisecond));
  EXPECT_TRUE(history_.due(kStart + 15 * kMillisecond));
  ASSERT_EQ(seen().points, 1U);
  const HistoryPoint& point = seen().point[0];
  EXPECT_EQ(of(point, HistoryField::time_ns), 5 * kMillisecond);
  EXPECT_EQ(of(point, HistoryField::budget_bytes), 7U);
  EXPECT_EQ(of(point, HistoryField::read_bytes), 300U);
  EXPECT_EQ(of(point, HistoryField::late_bytes), 40U);
  EXPECT_EQ(of(point, HistoryField::sample_late), 3U);
  ASSERT_EQ(seen().epochs, 1U);
  EXPECT_EQ(of(0, EpochField::memory_bytes), 200U);
  EXPECT_EQ(of(0, EpochField::end_ns), 2U);
}

TEST_F(Recorded, PointsStayBoundedInOrderAndEvenlyFar) {
  uint64_t now = kStart;
  for (uint64_t i = 0; i < 5 * protocol::kHistoryPoints; ++i) {
    while (!history_.due(now)) now += kMillisecond;
    history_.add(with_budget(now), now);
  }
  const HistoryCopy& got = seen();
  EXPECT_LE(got.points, protocol::kHistoryPoints);
  EXPECT_GE(got.points, protocol::kHistoryPoints / 2);
  EXPECT_GE(got.interval_ns, 4 * SessionHistory::kFirstIntervalNs);
  uint64_t widest = 0;
  for (uint64_t i = 0; i < got.points; ++i) {
    const uint64_t time = of(got.point[i], HistoryField::time_ns);
    EXPECT_EQ(of(got.point[i], HistoryField::budget_bytes), kStart + time) << i;
    if (i == 0) {
      EXPECT_EQ(time, 0U);
      continue;
    }
    const uint64_t before = of(got.point[i - 1], HistoryField::time_ns);
    ASSERT_LT(before, time) << i;
    widest = std::max(widest, time - before);
  }
  EXPECT_LE(widest, got.interval_ns + kMillisecond);
  EXPECT_EQ(of(got.point[got.points - 1], HistoryField::time_ns), now - kStart);
}

TEST_F(Recorded, EpochsGoForwardOnlyAndEachCountsItsOwn) {
  history_.enter(0, kStart);
  history_.count(EpochField::sample_hits, 1, kStart + 10);
  history_.enter(2, kStart + 20);
  history_.count(EpochField::sample_hits, 5, kStart + 30);
  history_.enter(1, kStart + 40);  // a straggler's
  history_.count(EpochField::sample_misses, 2, kStart + 50);
  history_.add({}, kStart + 60);
  ASSERT_EQ(seen().epochs, 2U);
  EXPECT_EQ(of(0, EpochField::sample_hits), 1U);
  EXPECT_EQ(of(0, EpochField::end_ns), 10U);
  EXPECT_EQ(of(1, EpochField::epoch), 2U);
  EXPECT_EQ(of(1, EpochField::begin_ns), 20U);
  EXPECT_EQ(of(1, EpochField::sample_hits), 5U);
  EXPECT_EQ(of(1, EpochField::sample_misses), 2U);
}

TEST_F(Recorded, LaterEpochsAreAddedToTheLastEntry) {
  constexpr uint64_t kEpochs = protocol::kHistoryEpochs + 10;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    history_.enter(epoch, kStart + epoch);
    history_.count(EpochField::sample_hits, 1, kStart + epoch);
    if (epoch % 7 == 0) history_.add({}, kStart + epoch);
  }
  history_.add({}, kStart + kEpochs);
  ASSERT_EQ(seen().epochs, protocol::kHistoryEpochs);
  EXPECT_EQ(seen().epochs_seen, kEpochs);
  for (uint64_t at = 0; at + 1 < protocol::kHistoryEpochs; ++at) {
    EXPECT_EQ(of(at, EpochField::sample_hits), 1U) << at;
    EXPECT_EQ(of(at, EpochField::epoch), at);
  }
  EXPECT_EQ(of(protocol::kHistoryEpochs - 1, EpochField::sample_hits), 11U);
}

TEST_F(Recorded, SubstitutionsArePublishedWithTheNextPoint) {
  history_.substituted({3, 9}, 10);
  history_.substituted({9, 0}, 10);
  EXPECT_EQ(seen().pairs_seen, 0U);
  history_.add({}, kStart);
  EXPECT_EQ(seen().pairs_seen, 2U);
  ASSERT_EQ(copy_->pairs, 2U);
  EXPECT_EQ(copy_->pair[0], uint64_t{3} << 32 | 9);
  EXPECT_EQ(copy_->pair[1], uint64_t{9} << 32);
  EXPECT_EQ(copy_->pair_count[1 * protocol::kPairParts + 4], 1U);
  EXPECT_EQ(copy_->pair_count[4 * protocol::kPairParts], 1U);
  shared_->pairs = shared_->pairs_seen = UINT64_MAX;  // a client's scribble
  EXPECT_LE(seen().pairs, protocol::kMostPairs);
}

TEST_F(Recorded, AWriterThatDiedInAChangeIsNotBelieved) {
  history_.add({}, kStart);
  shared_->sequence.fetch_add(1);
  EXPECT_FALSE(protocol::copy(*shared_, *copy_));
}

TEST_F(Recorded, AClientsScribbleDoesNoHarm) {
  history_.add({}, kStart);
  shared_->points.store(UINT64_MAX);
  shared_->epochs.store(UINT64_MAX);
  shared_->sequence.store(UINT64_MAX);
  for (uint64_t i = 1; i < 2 * protocol::kHistoryPoints; ++i) history_.add({}, kStart + i);
  EXPECT_LE(seen().points, protocol::kHistoryPoints);
  EXPECT_EQ(seen().epochs, 0U);
}

TEST_F(Recorded, AReaderSeesAllOfAChangeOrNothing) {
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t i = 0; i < 20'000; ++i) {
      HistoryPoint point;
      point.fill(i);
      history_.add(point, kStart + i);
    }
    done = true;
  });
  uint64_t good = 0;
  while (!done) {
    if (!protocol::copy(*shared_, *copy_)) continue;
    ++good;
    uint64_t before = 0;
    for (uint64_t at = 0; at < copy_->points; ++at) {
      const HistoryPoint& point = copy_->point[at];
      const uint64_t time = of(point, HistoryField::time_ns);
      ASSERT_EQ(of(point, HistoryField::bandwidth), time);
      ASSERT_EQ(of(point, HistoryField::ahead_bytes), time);
      ASSERT_TRUE(at == 0 || time > before) << at;
      before = time;
    }
  }
  writer.join();
  EXPECT_TRUE(protocol::copy(*shared_, *copy_));
}

// Passes over a file, as the scheduler distinguishes them.
class Nothing : public policy::Residency {
 public:
  uint64_t cached(FileId, Range) override { return 0; }
  bool known(FileId) const override { return true; }
};

class Passes : public testing::Test {
 protected:
  Passes() {
    scheduler_.add_session(SessionId{1}, {}, true, 0);
    for (const FileId file : {FileId{1}, FileId{2}}) {
      scheduler_.add_file(file, kSize, 9);
      scheduler_.file_usable(file, true);
    }
  }
  void read(FileId file, uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; at += kMiB) {
      Access access;
      access.offset = at;
      access.length = kMiB;
      access.time_ns = now_ += kMillisecond;
      access.reader = 7ULL << 32 | 7;
      access.session = SessionId{1};
      scheduler_.streams().on_access(file, access);
    }
  }
  static constexpr uint64_t kSize = 256 * kMiB;
  Nothing residency_;
  Scheduler scheduler_{&residency_};
  uint64_t now_ = kStart;
};

TEST_F(Passes, OneForEachTimeTheFileIsReadAgain) {
  for (uint64_t pass = 0; pass < 4; ++pass) {
    EXPECT_EQ(scheduler_.streams().passes(SessionId{1}), pass == 0 ? 0 : pass - 1);
    read(FileId{1}, 0, kSize);
    EXPECT_EQ(scheduler_.streams().passes(SessionId{1}), pass);
  }
  const uint64_t passed = scheduler_.view(SessionId{1}, now_).passed;
  EXPECT_LE(passed, 4 * kSize);
  EXPECT_GE(passed, 4 * (kSize - 6 * kMiB));
}

TEST_F(Passes, FilesInTurnsMakeThemTogether) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    read(FileId{1}, 0, kSize);
    read(FileId{2}, 0, kSize);
  }
  EXPECT_EQ(scheduler_.streams().passes(SessionId{1}), 2U);
}

TEST_F(Passes, ALookAtTheStartIsNone) {
  read(FileId{1}, 0, kSize / 4);
  read(FileId{1}, kMiB * 100, kMiB * 110);
  read(FileId{1}, 0, kMiB);
  EXPECT_EQ(scheduler_.streams().passes(SessionId{1}), 0U);
}

TEST_F(Passes, AStrangersSessionIsEmpty) {
  read(FileId{1}, 0, kSize / 2);
  const policy::SessionView view = scheduler_.view(SessionId{2}, now_);
  EXPECT_EQ(view.passed, 0U);
  EXPECT_EQ(view.in_flight, 0U);
  EXPECT_EQ(view.budget, scheduler_.accounts().budget());
}

TEST_F(Passes, WhatIsUnderWayAndAheadIsShown) {
  read(FileId{1}, 0, 8 * kMiB);
  std::vector<policy::PlannedRead> reads;
  scheduler_.plan(now_, &reads);
  ASSERT_FALSE(reads.empty());
  EXPECT_EQ(scheduler_.view(SessionId{1}, now_).in_flight, reads.size());
  EXPECT_GE(scheduler_.view(SessionId{1}, now_).depth, reads.size());
  uint64_t bytes = 0;
  for (const policy::PlannedRead& read : reads) {
    bytes += read.range.length();
    scheduler_.on_done(read.token, read.range.length(), 0, now_ + kMillisecond);
  }
  const policy::SessionView view = scheduler_.view(SessionId{1}, now_);
  EXPECT_EQ(view.in_flight, 0U);
  EXPECT_EQ(view.ahead, bytes);
  EXPECT_EQ(view.outstanding, bytes);
}

}  // namespace
}  // namespace sluice::test
