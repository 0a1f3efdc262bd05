// A log beside the packs, for jobs that leave that to the optimizer: by what the disk is measured
// to read.
#include "optimizer/services/stage/disk_choice.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tests/unit/pack_data.h"

namespace sluice::optimizer {
namespace {

namespace fs = std::filesystem;
using policy::DiskRates;

constexpr int kLimitMs = 60'000;
constexpr uint64_t kBytes = 4ULL << 30;
constexpr DiskRates kSsd{100e6, 600e6}, kEven{500e6, 700e6};

class NothingCached : public policy::Residency {
 public:
  uint64_t cached(policy::FileId /*file*/, policy::Range /*range*/) override { return 0; }
  bool known(policy::FileId /*file*/) const override { return false; }
};

class DiskChoiceTest : public ::testing::Test {
 protected:
  void use() { use(root_.path.string(), kBytes); }
  void use(const std::string& folder, uint64_t bytes) {
    choice_.use(&packer_, &log_, folder, bytes);
  }
  // The disk is measured after packs were opened, as it takes longer.
  void use_with_packs() {
    const std::lock_guard waits(measuring_);
    use();
    until([this] { return has_packs(); });
  }
  // Until the condition is true, runs what other threads pass on.
  template <typename Condition>
  void until(Condition condition) {
    while (!condition()) {
      pollfd ready = {mailbox_->fd(), POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, kLimitMs), 1) << "nothing came";
      mailbox_->run([](const std::exception& error) { FAIL() << error.what(); });
    }
  }
  bool has_packs() const { return packer_.packs() != nullptr; }
  // Whether a sample of that size would be added to the packs.
  bool takes(uint64_t number, uint64_t bytes) {
    const UniqueFd sample = test::memory(test::contents(number, bytes));
    return packer_.packs()->add({"/data/" + std::to_string(number), 0, bytes}, test::version(bytes),
                                sample.get());
  }

  const test::TemporaryFolder root_;
  NothingCached residency_;
  Plans plans_{&residency_};
  std::optional<MeasuredDisk> disk_ = MeasuredDisk{kSsd, 100 * kBytes};
  std::atomic<unsigned> measured_{0};
  unsigned disk_even_from_ = UINT32_MAX;  // that measurement, as `disk_` from then on
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::mutex measuring_;  // held: the measurement waits
  CopyPacker packer_{mailbox_};
  CopyLog log_{mailbox_, &plans_};
  DiskChoice choice_{mailbox_, [this](const std::string&) {
                       const std::lock_guard lock(measuring_);
                       if (measured_++ == disk_even_from_) disk_->rates = kEven;
                       return disk_;
                     }};
};

TEST_F(DiskChoiceTest, ALogWhereLargeReadsAreSeveralTimesAsFast) {
  use_with_packs();
  until([this] { return log_.may_write(); });
  ASSERT_TRUE(choice_.view());
  EXPECT_TRUE(choice_.view()->log);
  EXPECT_EQ(choice_.view()->rates.scattered, kSsd.scattered);
  EXPECT_TRUE(has_packs());
  use();  // another session
  EXPECT_EQ(measured_, 1U);
}

TEST_F(DiskChoiceTest, PacksAloneWhereTheyAreAboutAsFast) {
  disk_->rates = kEven;
  use_with_packs();
  until([this] { return choice_.view().has_value(); });
  EXPECT_FALSE(choice_.view()->log);
  EXPECT_FALSE(log_.view());
}

TEST_F(DiskChoiceTest, PacksAloneWhereTheDiskCannotBeMeasured) {
  disk_.reset();
  use_with_packs();
  until([this] { return choice_.view().has_value(); });
  EXPECT_FALSE(choice_.view()->log);
  EXPECT_EQ(choice_.view()->rates.large, 0);
  EXPECT_FALSE(log_.view());
}

// 64 MiB are not written for less.
TEST_F(DiskChoiceTest, NothingIsMeasuredForFewBytes) {
  use(root_.path.string(), DiskChoice::kLeastBytes - 1);
  until([this] { return has_packs(); });
  EXPECT_EQ(measured_, 0U);
}

TEST_F(DiskChoiceTest, PacksAreLimitedBesideALog) {
  disk_->room = 2 * DiskChoice::kLeastLog;
  use_with_packs();
  until([this] { return log_.may_write(); });
  EXPECT_TRUE(takes(1, 600 << 10));
  packer_.limit(1 << 20);
  EXPECT_FALSE(takes(2, 600 << 10));
  packer_.use(root_.path.string(), kBytes);  // a session without a log
  EXPECT_TRUE(takes(2, 600 << 10));
}

TEST_F(DiskChoiceTest, NoLogWhereTheDiskIsAlmostFull) {
  disk_->room = 2 * DiskChoice::kLeastLog - 2;
  use_with_packs();
  until([this] { return choice_.view().has_value(); });
  EXPECT_FALSE(log_.view());
}

// There is no log without a session, and the disk may be fuller for the next one.
TEST_F(DiskChoiceTest, NothingIsChosenForASessionThatHasEnded) {
  std::unique_lock waits(measuring_);
  use();
  until([this] { return has_packs(); });
  choice_.release();
  packer_.release();
  until([this] { return !has_packs(); });
  disk_even_from_ = 1;
  use();
  until([this] { return has_packs(); });
  waits.unlock();
  until([this] { return choice_.view().has_value(); });
  EXPECT_EQ(measured_, 2U);
  EXPECT_FALSE(choice_.view()->log);
  EXPECT_FALSE(log_.view());
}

TEST_F(DiskChoiceTest, NoLogWherePacksAreInAnotherFolder) {
  const test::TemporaryFolder other;
  packer_.use(other.path.string(), kBytes);
  use_with_packs();
  until([this] { return choice_.view().has_value(); });
  EXPECT_FALSE(log_.view());
}

TEST(DiskChoice, TogetherTheyTakeNoMoreThanIsGiven) {
  using Shares = DiskChoice::Shares;
  constexpr uint64_t kMuch = 1ULL << 50;
  EXPECT_EQ(DiskChoice::shares(100, 0, kMuch), (Shares{50, 50}));
  EXPECT_EQ(DiskChoice::shares(100, 70, kMuch), (Shares{70, 30})) << "packs keep what they have";
  EXPECT_EQ(DiskChoice::shares(100, 120, kMuch), (Shares{120, 0}));
  EXPECT_EQ(DiskChoice::shares(100, 20, 10), (Shares{25, 5})) << "an almost full disk";
  EXPECT_EQ(DiskChoice::shares(100, 0, 0), (Shares{0, 0}));
}

// The real disk: whatever it reads, what was written for that is gone.
TEST(DiskRates, AreKnownOrNot) {
  const test::TemporaryFolder folder;
  const std::optional<MeasuredDisk> disk = measure_disk(folder.path.string());
  if (disk) {
    EXPECT_GT(disk->rates.scattered, 0);
    EXPECT_GT(disk->rates.large, 0);
    EXPECT_GT(disk->room, kMeasuredBytes);
  }
  EXPECT_TRUE(fs::is_empty(folder.path));
  EXPECT_FALSE(measure_disk((folder.path / "missing").string()));
}

TEST(DiskRates, ALogPaysFromTwoAndAHalfTimesOn) {
  EXPECT_TRUE(policy::log_pays({100, 250}));
  EXPECT_FALSE(policy::log_pays({100, 249}));
  EXPECT_FALSE(policy::log_pays({0, 0}));
  EXPECT_TRUE(policy::log_pays(kSsd));
  EXPECT_FALSE(policy::log_pays(kEven));
  EXPECT_FALSE(policy::log_pays({1.4e9, 18e9})) << "a file system in memory";
}

}  // namespace
}  // namespace sluice::optimizer
