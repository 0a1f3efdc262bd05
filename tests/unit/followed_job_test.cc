// How LCache's logs follow a job: its epochs, its files and their sizes.
#include "policy/chunks/followed_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace sluice::policy {
namespace {

constexpr uint32_t kSamples = 200, kBytes = 20'000;
constexpr SessionId kJob{1}, kOther{2};

class FollowedJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dataset_ = book_.use(kJob, "files", kSamples);
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      file_.push_back(files_.intern("/data/" + std::to_string(sample)));
      book_.datasets().locate(kJob, dataset_, sample, {whole_file(file_.back())},
                              Source::kDeclared);
    }
  }

  static std::vector<uint32_t> shuffled(uint32_t seed) {
    std::vector<uint32_t> order(kSamples);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    return order;
  }

  void publish(uint32_t epoch, uint32_t seed, bool tentative = false) {
    const std::vector<uint32_t> order = shuffled(seed);
    ASSERT_TRUE(book_.publish(kJob, dataset_, epoch, 0, order, tentative));
  }
  void take(uint32_t sample) { book_.orders().take(kJob, dataset_, sample); }
  void fetch_all() {
    for (const SampleFileId file : file_) files_.set_bytes(file, kBytes);
  }
  std::unique_ptr<FollowedJob> follow() {
    auto job = FollowedJob::choose(&book_, &files_, 64 << 20, 16 * kBytes);
    EXPECT_NE(job, nullptr);
    if (job != nullptr) {
      EXPECT_FALSE(job->follow().turned);
    }
    return job;
  }

  FileTable files_;
  SampleBook book_{&files_};
  DatasetId dataset_{};
  std::vector<SampleFileId> file_;
};

TEST_F(FollowedJobTest, WithoutAnOrderOfWholeFilesThereIsNone) {
  EXPECT_EQ(FollowedJob::choose(&book_, &files_, 1 << 20, 4096), nullptr);
  const DatasetId unknown = book_.use(kOther, "unknown", kSamples);
  ASSERT_TRUE(book_.publish(kOther, unknown, 0, 0, shuffled(1)));
  EXPECT_EQ(FollowedJob::choose(&book_, &files_, 1 << 20, 4096), nullptr);
}

TEST_F(FollowedJobTest, FilesAreSamplesAndHaveOneSize) {
  publish(0, 1);
  const auto job = follow();
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->sample_of(file_[17]), 17U);
  EXPECT_EQ(job->file_of(17), file_[17]);
  EXPECT_FALSE(job->sample_of(files_.intern("/data/other")));
  EXPECT_TRUE(job->has_bytes(17, 300));
  EXPECT_TRUE(job->has_bytes(17, 300));
  EXPECT_FALSE(job->has_bytes(17, 301)) << "its place in a log has 300";
  EXPECT_FALSE(job->has_bytes(18, FollowedJob::kMostBytes + 1));
}

TEST_F(FollowedJobTest, WhatWasTakenIsRead) {
  publish(0, 1);
  const auto job = follow();
  ASSERT_NE(job, nullptr);
  const uint32_t first = shuffled(1)[0], second = shuffled(1)[1];
  take(first);
  EXPECT_FALSE(job->follow().turned);
  EXPECT_TRUE(job->is_read(first));
  EXPECT_FALSE(job->is_read(second));
  EXPECT_TRUE(job->is_ordered(second));
}

// The second epoch's order becomes known within the first, the third's never.
TEST_F(FollowedJobTest, AKnownOrderIsWrittenAheadAndThenReadInChunks) {
  publish(0, 1);
  const auto job = follow();
  ASSERT_NE(job, nullptr);
  fetch_all();
  publish(1, 2);
  EXPECT_FALSE(job->follow().turned);
  for (const uint32_t sample : shuffled(1)) {
    take(sample);
    EXPECT_EQ(job->plan().consumed({&sample, 1}).writes.size(), 1U);
  }
  take(shuffled(2)[0]);  // the next epoch begins
  EXPECT_TRUE(job->follow().turned);
  for (uint32_t chunk = 0; chunk < job->plan().log(job->plan().current()).chunks(); ++chunk) {
    EXPECT_TRUE(job->is_in_order(chunk)) << chunk;
  }
  for (const uint32_t sample : shuffled(2)) take(sample);
  publish(2, 3);
  EXPECT_FALSE(job->follow().turned) << "its log stays as it lies";
  EXPECT_FALSE(job->is_in_order(0));
}

// The next order is expected as the first epoch begins, and no file's size is known: what came of
// the epoch was written in its own order, and read one sample at a time in the next one.
TEST_F(FollowedJobTest, ChunksOfFilesOfUnknownSizeAreLaidOutOnceSomeHaveCome) {
  publish(0, 1);
  const auto job = follow();
  ASSERT_NE(job, nullptr);
  publish(1, 2, true);
  for (const uint32_t sample : shuffled(1)) {
    const bool was = job->plan().is_ahead();
    take(sample);
    files_.set_bytes(file_[sample], kBytes);
    ASSERT_TRUE(job->has_bytes(sample, kBytes));
    const bool expected = job->follow().expected;
    EXPECT_EQ(expected, !was && job->plan().is_ahead());
    job->plan().consumed({&sample, 1});
  }
  const LogIndex& next = job->plan().log(1 - job->plan().current());
  EXPECT_EQ(next.samples(), kSamples);
  uint32_t written = 0;
  for (uint32_t sample = 0; sample < kSamples; ++sample) written += next.is_written(sample) ? 1 : 0;
  EXPECT_EQ(written, kSamples - kSamples / FollowedJob::kKnownShare);
  publish(1, 2);
  EXPECT_TRUE(job->follow().turned);
  for (uint32_t chunk = 0; chunk < job->plan().log(job->plan().current()).chunks(); ++chunk) {
    EXPECT_TRUE(job->is_in_order(chunk)) << chunk;
  }
}

// The next epoch reads other samples than were expected: those of this one are in its log all the
// same.
TEST_F(FollowedJobTest, WhatIsReadIsKeptIfTheExpectedOrderDoesNotCome) {
  fetch_all();
  std::vector<uint32_t> read = shuffled(1);
  read.resize(kSamples / 2);
  ASSERT_TRUE(book_.publish(kJob, dataset_, 0, 0, read));
  const auto job = follow();
  ASSERT_NE(job, nullptr);
  std::vector<uint32_t> other;
  for (uint32_t sample = 0; sample < kSamples; ++sample) {
    if (std::ranges::find(read, sample) == read.end()) other.push_back(sample);
  }
  ASSERT_TRUE(book_.publish(kJob, dataset_, 1, 0, other, true));
  EXPECT_TRUE(job->follow().expected);
  for (const uint32_t sample : read) {
    take(sample);
    EXPECT_EQ(job->plan().consumed({&sample, 1}).writes.size(), 1U);
  }
  ASSERT_TRUE(book_.publish(kJob, dataset_, 1, 0, read));
  take(read[0]);
  EXPECT_TRUE(job->follow().turned);
  for (const uint32_t sample : read) EXPECT_TRUE(job->plan().is_cached(sample));
}

// Files that no log takes reserved room in it that others of the epoch would have had.
TEST_F(FollowedJobTest, FilesThatAreTooLargeOrEmptyAreNotLaidOut) {
  publish(0, 1);
  const auto job = follow();
  ASSERT_NE(job, nullptr);
  fetch_all();
  files_.set_bytes(file_[3], FollowedJob::kMostBytes + 1);
  files_.set_bytes(file_[4], 0);
  publish(1, 2);
  EXPECT_TRUE(job->follow().expected);
  EXPECT_EQ(job->plan().log(1 - job->plan().current()).samples(), kSamples - 2);
}

// The validation's files have sizes, the training's have none.
TEST_F(FollowedJobTest, SizesOfOtherDatasetsAreNotTakenForThoseOfTheJob) {
  publish(0, 1);
  const auto job = follow();
  ASSERT_NE(job, nullptr);
  for (int other = 0; other < 100; ++other) {
    files_.set_bytes(files_.intern("/other/" + std::to_string(other)), 5);
  }
  publish(1, 2);
  EXPECT_FALSE(job->follow().expected);
  uint32_t known = 0;
  for (; known < kSamples && !job->plan().is_ahead(); ++known) {
    files_.set_bytes(file_[known], kBytes);
    job->follow();
  }
  EXPECT_GT(known, kSamples / FollowedJob::kKnownShare);
  EXPECT_LT(known, 3 * kSamples / FollowedJob::kKnownShare);
}

TEST_F(FollowedJobTest, AJobThatEndedIsGone) {
  publish(0, 1);
  const auto job = follow();
  ASSERT_NE(job, nullptr);
  book_.leave(kJob);
  EXPECT_TRUE(job->follow().gone);
}

}  // namespace
}  // namespace sluice::policy
