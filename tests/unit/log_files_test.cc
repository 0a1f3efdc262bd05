// The two logs on a disk: a whole run of epochs by policy/chunks/log_plan.h, with the bytes of
// every sample compared, while writes fail and the disk returns other bytes.
#include "optimizer/chunks/log_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <random>

#include "policy/chunks/log_plan.h"

namespace sluice::optimizer {
namespace {

using policy::LogPlan;
using policy::LogRange;
using policy::SampleId;

constexpr uint32_t kSamples = 600, kChunk = 16;

std::vector<std::byte> bytes_of(SampleId sample, size_t size) {
  std::vector<std::byte> bytes(size);
  std::mt19937 random(sample + 1);
  for (std::byte& one : bytes) one = static_cast<std::byte>(random());
  return bytes;
}

// A folder of its own, and no file in it that is left behind.
class LogFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "log-files-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::string reason;
    logs_ = LogFiles::open(folder_, &reason);
    ASSERT_NE(logs_, nullptr) << reason;
  }
  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "a log has a name";
    std::filesystem::remove_all(folder_);
  }

  std::string folder_;
  std::unique_ptr<LogFiles> logs_;
};

TEST_F(LogFilesTest, StripesAreOneLog) {
  constexpr uint64_t kEnd =
      LogFiles::kStripe * LogFiles::kStripes;  // a second one of the first file
  const auto one = bytes_of(1, 9000), two = bytes_of(2, 300'000), three = bytes_of(3, 9000);
  ASSERT_EQ(logs_->write(1, 0, three), 0);
  ASSERT_EQ(logs_->write(1, kEnd - 4096, one), 0);
  ASSERT_EQ(logs_->write(1, LogFiles::kStripe - 100'000, two), 0);
  int error = 0;
  const AlignedBuffer last = logs_->read(1, {kEnd - 4096, 16384}, &error);
  ASSERT_EQ(last.size(), 16384U) << error;
  EXPECT_TRUE(std::ranges::equal(last.span().first(9000), one));
  EXPECT_EQ(last.span()[9000], std::byte{0}) << "nothing was written there";
  const uint64_t from = (LogFiles::kStripe - 100'000) / 4096 * 4096;
  const AlignedBuffer across = logs_->read(1, {from, 400 * 4096}, &error);
  ASSERT_EQ(across.size(), 400U * 4096) << error;
  EXPECT_TRUE(std::ranges::equal(
      across.span().subspan(LogFiles::kStripe - 100'000 - from, two.size()), two));
  const AlignedBuffer first = logs_->read(1, {0, 12288}, &error);
  EXPECT_TRUE(std::ranges::equal(first.span().first(9000), three));
  EXPECT_LT(logs_->taken(1), 1U << 20) << "the space between is not taken";
  logs_->clear(1);
  EXPECT_EQ(logs_->taken(1), 0U);
}

TEST_F(LogFilesTest, WhatWasWrittenIsReadInWholeBlocks) {
  const auto one = bytes_of(1, 5000), two = bytes_of(2, 9000);
  ASSERT_EQ(logs_->write(0, 0, one), 0);
  ASSERT_EQ(logs_->write(0, 5000, two), 0);
  int error = 0;
  const AlignedBuffer read = logs_->read(0, {0, 14000}, &error);
  ASSERT_EQ(error, 0);
  ASSERT_EQ(read.size(), 16384U);
  EXPECT_EQ(LogFiles::checksum(read.span().subspan(0, 5000)), LogFiles::checksum(one));
  EXPECT_EQ(LogFiles::checksum(read.span().subspan(5000, 9000)), LogFiles::checksum(two));
  EXPECT_NE(LogFiles::checksum(read.span().subspan(4999, 9000)), LogFiles::checksum(two));
  EXPECT_TRUE(std::all_of(read.span().begin() + 14000, read.span().end(),
                          [](std::byte one) { return one == std::byte{}; }));
}

TEST_F(LogFilesTest, WhatTheDiskChangedIsNotWhole) {
  const auto one = bytes_of(1, 8192);
  ASSERT_EQ(logs_->write(1, 4096, one), 0);
  const char other = static_cast<char>(static_cast<char>(one[100]) ^ 1);
  ASSERT_EQ(pwrite(logs_->descriptor(1), &other, 1, 4196), 1);
  int error = 0;
  const AlignedBuffer read = logs_->read(1, {4096, 8192}, &error);
  ASSERT_EQ(error, 0);
  EXPECT_NE(LogFiles::checksum(read.span()), LogFiles::checksum(one));
}

TEST_F(LogFilesTest, ReleasedBlocksAreGivenBack) {
  const auto large = bytes_of(1, 1 << 20);
  ASSERT_EQ(logs_->write(0, 0, large), 0);
  ASSERT_EQ(fsync(logs_->descriptor(0)), 0);
  const uint64_t before = logs_->taken(0);
  EXPECT_GE(before, 1U << 20);
  const int error = logs_->release(0, {0, 1 << 19});
  if (error != EOPNOTSUPP) {
    ASSERT_EQ(error, 0);
    EXPECT_LE(logs_->taken(0), before - (1 << 19) + 65536);
  }
  logs_->clear(0);
  EXPECT_LE(logs_->taken(0), 65536U);
}

TEST_F(LogFilesTest, BadArgumentsAreRefused) {
  int error = 0;
  EXPECT_EQ(logs_->read(0, {10, 4096}, &error).size(), 0U);
  EXPECT_EQ(error, EINVAL);
  std::string reason;
  EXPECT_EQ(LogFiles::open(folder_ + "/none", &reason), nullptr);
  EXPECT_NE(reason.find("/none"), std::string::npos);
}

// A file system gives up what is just being written to its disk only after that; a log that was
// cleared by truncation held up the thread that writes, and the next epoch's samples were not
// written.
TEST_F(LogFilesTest, AClearedLogIsEmptyBeforeItsRoomIsGivenBack) {
  const auto one = bytes_of(1, 9000), two = bytes_of(2, 9000);
  ASSERT_EQ(logs_->write(0, 0, one), 0);
  const UniqueFd old(dup(logs_->descriptor(0)));
  logs_->clear(0);
  EXPECT_EQ(logs_->taken(0), 0U);
  std::vector<std::byte> still(one.size());
  EXPECT_EQ(pread(old.get(), still.data(), still.size(), 0), 9000) << "its bytes were given up";
  ASSERT_EQ(logs_->write(0, 0, two), 0);
  logs_->close_cleared();
  int error = 0;
  EXPECT_TRUE(std::ranges::equal(logs_->read(0, {0, 12288}, &error).span().first(9000), two));
}

// A fetch that waited for a mount that hangs held the whole log of a job that had ended.
TEST_F(LogFilesTest, WhatStillHoldsAnEndedLogHoldsNoRoom) {
  const auto open_files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_files();
  std::string reason;
  const std::shared_ptr<LogFiles> held = LogFiles::open(folder_, &reason);
  ASSERT_NE(held, nullptr) << reason;
  ASSERT_EQ(held->write(0, 0, bytes_of(1, 9000)), 0);
  EXPECT_GT(open_files(), before);
  held->end();
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(held->write(0, 0, bytes_of(1, 9000)), EIO);
  int error = 0;
  EXPECT_EQ(held->read(0, {0, 4096}, &error).size(), 0U);
  EXPECT_EQ(error, EIO);
  EXPECT_EQ(held->release(1, {0, 4096}), EIO);
  EXPECT_EQ(held->taken(0), 0U);
}

TEST_F(LogFilesTest, OnAFullDiskWhatWasClearedIsGivenBackFirst) {
  constexpr size_t kMost = 5 << 20;  // of eight
  if (mount("none", folder_.c_str(), "tmpfs", 0, "size=8m") != 0) GTEST_SKIP() << "needs root";
  std::string reason;
  auto logs = LogFiles::open(folder_, &reason);
  ASSERT_NE(logs, nullptr) << reason;
  EXPECT_EQ(logs->write(1, 0, bytes_of(1, kMost)), 0);
  logs->clear(1);
  EXPECT_EQ(logs->write(1, 0, bytes_of(2, kMost)), 0);
  EXPECT_EQ(logs->write(0, 0, bytes_of(3, kMost)), ENOSPC);
  logs.reset();
  logs_.reset();
  ASSERT_EQ(umount(folder_.c_str()), 0);
}

// What is written beyond the limit fails as on a full disk, and in part.
TEST_F(LogFilesTest, FullDiskIsReported) {
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit few = {10000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &few), 0);
  EXPECT_EQ(logs_->write(0, 0, bytes_of(1, 9000)), 0);
  EXPECT_EQ(logs_->write(0, 9000, bytes_of(2, 9000)), EFBIG);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  int error = 0;
  const AlignedBuffer read = logs_->read(0, {0, 18000}, &error);
  ASSERT_EQ(error, 0);
  EXPECT_EQ(LogFiles::checksum(read.span().subspan(0, 9000)),
            LogFiles::checksum(bytes_of(1, 9000)));
  EXPECT_NE(LogFiles::checksum(read.span().subspan(9000, 9000)),
            LogFiles::checksum(bytes_of(2, 9000)));
}

// Five epochs whose orders are known one epoch ahead. Every tenth write fails, and one sample in
// fifty is damaged on the disk.
class Epochs {
 public:
  Epochs(LogFiles* logs, uint32_t seed, uint64_t budget)
      : logs_(logs), random_(seed), sizes_(kSamples), plan_(sized(), kChunk * 15'000, budget) {}

  void epoch(const std::vector<SampleId>& order, const std::vector<SampleId>& next) {
    if (plan_.begin_epoch(next)) {
      logs_->clear(1 - plan_.current());
    }
    for (size_t at = 0; at < order.size(); at += kChunk) {
      const std::span batch(&order[at], std::min<size_t>(kChunk, order.size() - at));
      ASSERT_NO_FATAL_FAILURE(supply(batch));
      ASSERT_NO_FATAL_FAILURE(move(batch));
    }
  }

  uint64_t from_log() const { return from_log_; }
  uint64_t damaged() const { return damaged_; }

 private:
  std::span<const uint32_t> sized() {
    for (uint32_t& size : sizes_) size = 1 + random_() % 30000;
    return sizes_;
  }

  // Reads what the batch needs, as a fetch would.
  void supply(std::span<const SampleId> batch) {
    const LogPlan::Reads reads = plan_.reads(batch);
    for (const LogRange& range : reads.ranges) {
      int error = 0;
      const AlignedBuffer buffer = logs_->read(plan_.current(), range, &error);
      ASSERT_EQ(error, 0);
      for (const SampleId sample : batch) {
        const auto place = plan_.log(plan_.current()).place(sample);
        if (!plan_.is_cached(sample) || place->offset < range.offset ||
            place->offset + place->length > range.offset + range.length) {
          continue;
        }
        const auto found = buffer.span().subspan(place->offset - range.offset, place->length);
        const auto right = bytes_of(sample, sizes_[sample]);
        if (LogFiles::checksum(found) != sums_[plan_.current()][sample]) {
          ASSERT_EQ(spoilt_.count(sample), 1U) << "sample " << sample;
          plan_.drop(sample);
          ++damaged_;
          continue;
        }
        ASSERT_TRUE(std::equal(found.begin(), found.end(), right.begin(), right.end()));
        ++from_log_;
      }
    }
  }

  void move(std::span<const SampleId> batch) {
    const LogPlan::Moves moves = plan_.consumed(batch);
    for (const LogRange& range : moves.release) {
      const int error = logs_->release(plan_.current(), range);
      ASSERT_TRUE(error == 0 || error == EOPNOTSUPP);
    }
    const uint32_t log = moves.to_current ? plan_.current() : 1 - plan_.current();
    for (const LogPlan::Write& write : moves.writes) {
      spoilt_.erase(write.sample);
      const auto bytes = bytes_of(write.sample, sizes_[write.sample]);
      if (random_() % 10 == 0) {
        plan_.drop(write.sample);
        continue;
      }
      ASSERT_EQ(logs_->write(log, write.offset, bytes), 0);
      sums_[log][write.sample] = LogFiles::checksum(bytes);
      if (random_() % 50 != 0) continue;
      const char other = static_cast<char>(static_cast<char>(bytes[0]) ^ 1);
      ASSERT_EQ(pwrite(logs_->descriptor(log), &other, 1, static_cast<off_t>(write.offset)), 1);
      spoilt_[write.sample] = true;
    }
  }

  LogFiles* const logs_;
  std::mt19937 random_;
  std::vector<uint32_t> sizes_;
  LogPlan plan_;
  std::array<std::map<SampleId, uint64_t>, 2> sums_;
  std::map<SampleId, bool> spoilt_;
  uint64_t from_log_ = 0, damaged_ = 0;
};

TEST_F(LogFilesTest, EpochsReadTheRightBytesWhateverTheDiskDoes) {
  for (const uint64_t budget : {4ULL << 20, 64ULL << 20}) {
    logs_->clear(0);
    logs_->clear(1);
    Epochs run(logs_.get(), 7, budget);
    std::mt19937 random(11);
    std::vector<std::vector<SampleId>> orders(6, std::vector<SampleId>(kSamples));
    for (auto& order : orders) {
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
    }
    for (size_t epoch = 0; epoch + 1 < orders.size(); ++epoch) {
      ASSERT_NO_FATAL_FAILURE(run.epoch(orders[epoch], orders[epoch + 1])) << "epoch " << epoch;
    }
    EXPECT_GT(run.damaged(), 0U);
    // Four epochs; the larger budget holds all but what was dropped.
    EXPECT_GT(run.from_log(), budget > 10U << 20 ? kSamples * 3U : kSamples / 2U);
  }
}

}  // namespace
}  // namespace sluice::optimizer
