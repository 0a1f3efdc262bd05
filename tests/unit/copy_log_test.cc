// The log of a job that runs: what its reads and its disk are held accountable for.
#include "optimizer/services/stage/copy_log.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/with_mailbox.h"

namespace sluice::optimizer {
namespace {

using policy::SampleFileId;
using policy::SessionId;

constexpr uint32_t kSamples = 100, kBytes = 20'000;
constexpr SessionId kJob{1};

class NothingCached : public policy::Residency {
 public:
  uint64_t cached(policy::FileId /*file*/, policy::Range /*range*/) override { return 0; }
  bool known(policy::FileId /*file*/) const override { return false; }
};

class CopyLogTest : public test::WithMailbox {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "copy-log-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    dataset_ = plans_.samples.use(kJob, "files", kSamples);
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      const SampleFileId file = plans_.sample_files.intern("/data/" + std::to_string(sample));
      plans_.samples.datasets().locate(kJob, dataset_, sample, {policy::whole_file(file)},
                                       policy::Source::kDeclared);
      plans_.sample_files.set_bytes(file, kBytes);
      file_.push_back(file);
    }
    log_.use(folder_, 64 << 20);
    until([this] { return log_.may_write(); });
    publish(0);
    publish(1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::vector<uint32_t> order(uint32_t epoch) {
    std::vector<uint32_t> order(kSamples);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(epoch));
    return order;
  }
  void publish(uint32_t epoch) {
    ASSERT_TRUE(plans_.samples.publish(kJob, dataset_, epoch, 0, order(epoch)));
  }
  void take(uint32_t sample) { plans_.samples.orders().take(kJob, dataset_, sample); }
  // The first of an epoch begins it, as the last of the one before ends that; all but the first of
  // all was taken by then.
  void take_at(uint32_t epoch, uint32_t at) {
    if (epoch == 0 || at != 0) take(order(epoch)[at]);
  }
  void begin(uint32_t epoch) { take(order(epoch)[0]); }

  void write(uint32_t sample) {
    UniqueFd source(memfd_create("sample", MFD_CLOEXEC));
    const std::vector<std::byte> bytes(bytes_, static_cast<std::byte>(sample));
    ASSERT_EQ(pwrite(source.get(), bytes.data(), bytes.size(), 0), ssize_t{bytes_});
    protocol::StageStat stat{};
    stat.size = bytes_;
    log_.write(file_[sample], std::move(source), stat, false);
  }
  // The job reads the whole epoch, whose samples are written for the next one, which begins.
  void read_epoch(uint32_t epoch) {
    const uint64_t before = log_.view()->written_files;
    for (uint32_t at = 0; at < kSamples; ++at) {
      take_at(epoch, at);
      write(order(epoch)[at]);
      const bool pause = at % 16 == 0 || at + 1 == kSamples;  // less than kMostWaiting is waiting
      if (pause) until([&] { return log_.view()->written_files > before + at; });
    }
    publish(epoch + 2);
    begin(epoch + 1);
  }
  std::vector<std::shared_ptr<const LoggedCopy>> find_all() {
    std::vector<std::shared_ptr<const LoggedCopy>> found;
    for (const SampleFileId file : file_) found.push_back(log_.find(file));
    return found;
  }

  NothingCached residency_;
  Plans plans_{&residency_};
  policy::DatasetId dataset_{};
  std::vector<SampleFileId> file_;
  uint32_t bytes_ = kBytes;
  std::string folder_;
  CopyLog log_{mailbox_, &plans_};
};

// As many copies were made at once for what waits to be written as there are threads, each of any
// size, before the first of them counted.
TEST_F(CopyLogTest, CopiesThatAreBeingMadeAreAmongWhatWaits) {
  std::vector<uint64_t> begun;
  for (uint32_t sample = 0; log_.may_write(); ++sample) {
    plans_.sample_files.set_bytes(file_[sample], 10 << 20);
    begun.push_back(log_.begin_copy(file_[sample]));
    ASSERT_EQ(begun.back(), 10U << 20) << "and no more than that may be copied";
  }
  EXPECT_EQ(begun.size(), CopyLog::kMostWaiting / (10 << 20) + 1);
  for (const uint64_t bytes : begun) log_.end_copy(bytes, log_.turn() + 1);
  EXPECT_FALSE(log_.may_write()) << "what was for another log has not counted for this one";
  for (const uint64_t bytes : begun) log_.end_copy(bytes, log_.turn());
  const SampleFileId unknown = plans_.sample_files.intern("/data/unknown");
  const uint64_t most = log_.begin_copy(unknown);
  EXPECT_GE(most, 1U << 20) << "of a size that is not known";
  EXPECT_LE(most, policy::FollowedJob::kMostBytes);
  log_.end_copy(most, log_.turn());
  EXPECT_TRUE(log_.may_write());
}

// A chunk has at least sixteen samples, of up to 64 MiB: all of it at once would be a gigabyte.
TEST_F(CopyLogTest, ChunksThatAreTooLargeAreReadSampleBySample) {
  bytes_ = 2 << 20;
  for (const SampleFileId file : file_) plans_.sample_files.set_bytes(file, bytes_);
  log_.release();
  log_.use(folder_, 1 << 30);
  until([this] { return log_.may_write(); });
  read_epoch(0);
  EXPECT_NE(log_.find(file_[order(1)[1]]), nullptr);
  EXPECT_EQ(log_.view()->chunk_reads, 0U);
  EXPECT_EQ(log_.view()->lone_reads, 1U);
}

TEST_F(CopyLogTest, ADiskThatReturnsOtherBytesEndsTheLog) {
  read_epoch(0);
  const auto found = find_all();
  for (uint32_t sample = 0; sample < CopyLog::kMostDamaged; ++sample) {
    ASSERT_NE(found[sample], nullptr);
    ASSERT_TRUE(log_.may_write()) << "it ended after " << sample;
    log_.damaged(file_[sample], *found[sample]);
    EXPECT_EQ(log_.view()->damaged_files, sample + 1);
  }
  EXPECT_FALSE(log_.may_write());
  EXPECT_EQ(log_.find(file_[CopyLog::kMostDamaged]), nullptr);
}

// Fetches that waited while the epoch turned found the next one's bytes; sixteen of them, over all
// of a job's epochs, ended its log, with a line that its disk was damaged.
TEST_F(CopyLogTest, FetchesFromALogThatWasClearedAreNotHeldAgainstTheDisk) {
  read_epoch(0);
  const auto found = find_all();
  read_epoch(1);
  for (uint32_t sample = 0; sample < kSamples; ++sample) {
    if (sample == order(1)[0]) continue;  // was read
    ASSERT_NE(found[sample], nullptr);
    log_.damaged(file_[sample], *found[sample]);
  }
  EXPECT_EQ(log_.view()->damaged_files, 0U);
  const auto again = find_all();
  EXPECT_EQ(std::ranges::count(again, nullptr), 1) << "what the log has now was dropped";
}

TEST_F(CopyLogTest, AFetchOfWhatWasDroppedIsNotHeldAgainstTheDisk) {
  read_epoch(0);
  const auto found = log_.find(file_[7]);
  ASSERT_NE(found, nullptr);
  log_.drop(file_[7]);  // its original changed
  log_.damaged(file_[7], *found);
  EXPECT_EQ(log_.view()->damaged_files, 0U);
}

// The job read the file itself before the fetch was carried out: its blocks were released.
TEST_F(CopyLogTest, AFetchOfWhatWasReleasedIsNotHeldAgainstTheDisk) {
  read_epoch(0);
  const uint32_t first = order(1)[1];
  const auto found = log_.find(file_[first]);
  ASSERT_NE(found, nullptr);
  take(first);
  write(first);
  log_.damaged(file_[first], *found);
  EXPECT_EQ(log_.view()->damaged_files, 0U);
}

class CopyLogMovesTest : public CopyLogTest {
 protected:
  void SetUp() override {
    CopyLogTest::SetUp();
    bytes_ = 2 << 20;
    for (const SampleFileId file : file_) plans_.sample_files.set_bytes(file, bytes_);
    log_.release();
    log_.use(folder_, uint64_t{2} << 30);
    until([this] { return log_.may_write(); });
    read_epoch(0);
  }
  // All at once: more than may wait.
  void write_epoch(uint32_t epoch, bool read) {
    for (uint32_t at = 0; at < kSamples; ++at) {
      if (read) take_at(epoch, at);
      write(order(epoch)[at]);
    }
  }
  // The log of `epoch`, which has begun, has every byte of every sample.
  void expect_whole() {
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      const auto found = log_.find(file_[sample]);
      ASSERT_NE(found, nullptr) << sample;
      const UniqueFd to(memfd_create("found", MFD_CLOEXEC));
      ASSERT_EQ(copy_logged(*found, to.get()), 0) << sample;
      std::vector<std::byte> bytes(bytes_);
      ASSERT_EQ(pread(to.get(), bytes.data(), bytes.size(), 0), ssize_t{bytes_});
      ASSERT_EQ(std::ranges::count(bytes, static_cast<std::byte>(sample)), ssize_t{bytes_});
    }
  }
};

// A disk that was busy for a moment cost the next epoch a read of the original for each of them.
TEST_F(CopyLogMovesTest, WhatTheWriterHadNoTimeForIsMovedLater) {
  write_epoch(1, true);
  until([this] { return log_.view()->written_files == 2 * kSamples; });
  EXPECT_GT(log_.view()->moved_files, kSamples / 2);
  EXPECT_EQ(log_.view()->skipped_files, 0U);
  begin(2);
  expect_whole();
}

TEST_F(CopyLogMovesTest, WhatTheWriterHadNoTimeForIsMovedAfterTheEpochTurned) {
  write_epoch(1, true);
  begin(2);
  ASSERT_TRUE(log_.wants(file_[0]));
  until([this] { return log_.view()->written_files == 2 * kSamples; });
  expect_whole();
}

// Neither read nor in memory: whatever a write of it began for was of the epoch before.
TEST_F(CopyLogMovesTest, WhatThisEpochStillReadsStaysInItsLog) {
  const uint64_t before = log_.view()->written_files;
  write_epoch(1, false);
  until([&] { return log_.view()->written_files > before; });
  EXPECT_EQ(log_.view()->written_files, before + 1) << "what began the epoch was read";
  uint64_t left = 0;
  for (const SampleFileId file : file_) left += log_.has(file) ? 1 : 0;
  EXPECT_EQ(left, kSamples - 1);
}

// The order of the next epoch has no place for them: they took the room of those that have one.
TEST_F(CopyLogMovesTest, WhatTheNextEpochDoesNotReadLeavesTheLog) {
  const auto half = [](uint32_t epoch) {
    auto all = order(epoch);
    all.resize(kSamples / 2);
    return all;
  };
  write_epoch(1, true);
  until([this] { return log_.view()->written_files == 2 * kSamples; });
  begin(2);
  for (uint32_t at = 0; at < kSamples - 1; ++at) take_at(2, at);
  const uint64_t used = log_.view()->used_bytes;
  ASSERT_TRUE(plans_.samples.publish(kJob, dataset_, 3, 0, half(3)));
  ASSERT_TRUE(plans_.samples.publish(kJob, dataset_, 3, kSamples / 2, half(4)));
  ASSERT_TRUE(log_.wants(file_[0]));
  until([this] { return log_.view()->used_bytes < uint64_t{kSamples} * bytes_; });
  EXPECT_LT(log_.view()->used_bytes, used);
}

TEST_F(CopyLogMovesTest, AnOrderThatBecomesKnownLateIsWrittenAllTheSame) {
  write_epoch(1, true);
  begin(2);
  ASSERT_TRUE(log_.wants(file_[0]));
  until([this] { return log_.view()->written_files == 2 * kSamples; });
  for (uint32_t at = 0; at < kSamples / 2; ++at) take_at(2, at);
  EXPECT_FALSE(log_.may_move(file_[order(2)[0]])) << "no order is known to write it in";
  publish(3);
  ASSERT_TRUE(log_.wants(file_[0]));
  until([this] { return log_.view()->written_files == 2 * kSamples + kSamples / 2; });
  for (uint32_t at = kSamples / 2; at < kSamples; ++at) {
    take_at(2, at);
    write(order(2)[at]);
  }
  begin(3);
  ASSERT_TRUE(log_.wants(file_[0]));
  until([this] { return log_.view()->written_files == 3 * kSamples; });
  expect_whole();
}

}  // namespace
}  // namespace sluice::optimizer
