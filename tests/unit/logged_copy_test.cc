// What a fetch takes from a log: one request for all that a chunk's fetches need, and no byte that
// was not written.
#include "optimizer/chunks/logged_copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kSample = 5000;

class LoggedCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "logged-copy-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::string reason;
    files_ = LogFiles::open(folder_, &reason);
    ASSERT_NE(files_, nullptr) << reason;
    for (uint64_t sample = 0; sample < 8; ++sample) {
      ASSERT_EQ(files_->write(1, sample * kSample, bytes_of(sample)), 0);
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::vector<std::byte> bytes_of(uint64_t sample) {
    return std::vector<std::byte>(kSample, static_cast<std::byte>(sample + 1));
  }

  LoggedCopy logged(std::shared_ptr<LogRead> read, uint64_t sample) const {
    return {.read = std::move(read),
            .place = {sample * kSample, kSample},
            .entry = {.checksum = LogFiles::checksum(bytes_of(sample))}};
  }

  std::string folder_;
  std::shared_ptr<LogFiles> files_;
};

TEST_F(LoggedCopyTest, FetchesOfOneChunkReadItOnce) {
  const auto read = std::make_shared<LogRead>(files_, 1, std::vector<policy::LogRange>{{0, 40960}});
  ASSERT_FALSE(read->bytes({0, kSample}).empty());
  files_->clear(1);  // what is read later would not be found
  std::vector<std::thread> fetches;
  for (uint64_t sample = 0; sample < 8; ++sample) {
    fetches.emplace_back([&, sample] {
      const UniqueFd to(memfd_create("copy", MFD_CLOEXEC));
      EXPECT_EQ(copy_logged(logged(read, sample), to.get()), 0);
      std::vector<std::byte> found(kSample + 1);
      EXPECT_EQ(pread(to.get(), found.data(), found.size(), 0), ssize_t{kSample});
      found.resize(kSample);
      EXPECT_EQ(found, bytes_of(sample));
    });
  }
  for (std::thread& fetch : fetches) fetch.join();
}

TEST_F(LoggedCopyTest, OtherBytesThanWereWrittenAreRefused) {
  const UniqueFd to(memfd_create("copy", MFD_CLOEXEC));
  LoggedCopy other =
      logged(std::make_shared<LogRead>(files_, 1, std::vector<policy::LogRange>{{0, 8192}}), 1);
  other.entry.checksum ^= 1;
  EXPECT_EQ(copy_logged(other, to.get()), EIO) << "the range ends within the sample";
  other.read = std::make_shared<LogRead>(files_, 1, std::vector<policy::LogRange>{{0, 12288}});
  EXPECT_EQ(copy_logged(other, to.get()), EBADMSG);
  EXPECT_EQ(lseek(to.get(), 0, SEEK_CUR), 0) << "nothing was written";
}

TEST_F(LoggedCopyTest, RangesApartAreFoundByTheirPlace) {
  const auto read = std::make_shared<LogRead>(
      files_, 1, std::vector<policy::LogRange>{{0, 8192}, {20480, 20480}});
  const UniqueFd to(memfd_create("copy", MFD_CLOEXEC));
  EXPECT_EQ(copy_logged(logged(read, 0), to.get()), 0);
  EXPECT_EQ(copy_logged(logged(read, 3), to.get()), EIO) << "between the ranges";
  EXPECT_EQ(copy_logged(logged(read, 5), to.get()), 0);
}

}  // namespace
}  // namespace sluice::optimizer
