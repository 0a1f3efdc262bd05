// Copies of what the page cache has of originals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "optimizer/io/transfer.h"
#include "optimizer/stage/stage_copy.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

class CachedCopyTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::current_path() / ("cached-copy-" + std::to_string(getpid()));
    std::ofstream(path_) << std::string(kBytes, 'a');
    rules_.any_mount = true;
    rules_.most_bytes = 1 << 20;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  static constexpr size_t kBytes = 10'000;
  std::filesystem::path path_;
  CopyRules rules_;
};

// The thread that writes what was read to a log had the originals themselves, of all mounts: one
// that did not answer held up the others'.
TEST_F(CachedCopyTest, HasTheBytesOfItsOriginalAndNeedsItNoMore) {
  UniqueFd copy;
  protocol::StageStat stat;
  ASSERT_TRUE(copy_cached(path_, rules_, &copy, &stat));
  EXPECT_EQ(stat.size, kBytes);
  struct stat about {};
  ASSERT_EQ(fstat(copy.get(), &about), 0);
  EXPECT_NE(about.st_ino, stat.inode);
  std::ofstream(path_) << std::string(kBytes, 'b');
  std::string bytes(kBytes, ' ');
  ASSERT_EQ(read_fully(copy.get(), bytes.data(), kBytes, 0), 0);
  EXPECT_EQ(bytes, std::string(kBytes, 'a'));
}

TEST_F(CachedCopyTest, IsMadeOfNothingThatWouldHaveToBeRead) {
  const UniqueFd file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file);
  fdatasync(file.get());
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  UniqueFd copy;
  protocol::StageStat stat;
  EXPECT_FALSE(copy_cached(path_, rules_, &copy, &stat));
  EXPECT_FALSE(copy);
  EXPECT_FALSE(copy_cached(path_.string() + "-none", rules_, &copy, &stat));
  rules_.most_bytes = kBytes - 1;
  EXPECT_FALSE(copy_cached(path_, rules_, &copy, &stat));
}

}  // namespace
}  // namespace sluice::optimizer
