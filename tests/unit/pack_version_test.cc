// What a pack has to know of a file: where times and inodes suffice, and where the mount has to.
#include "optimizer/stage/pack_version.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

protocol::StageStat some_file() {
  protocol::StageStat stat{};
  stat.inode = 77;
  stat.size = 1000;
  stat.modified_s = 5;
  stat.modified_ns = 6;
  stat.changed_s = 7;
  stat.changed_ns = 8;
  return stat;
}

TEST(PackVersion, OfAFileWithReliableTimes) {
  const auto version = pack_version(some_file(), {.shows_changes = true, .number = 3});
  ASSERT_TRUE(version);
  EXPECT_EQ(*version, (protocol::PackVersion{77, 1000, 5, 7, 6, 8}));
  EXPECT_EQ(version, pack_version(some_file(), {.shows_changes = true})) << "whatever its mount";
}

// Two archives that were mounted in one place may have the same inodes, sizes and times.
TEST(PackVersion, IsOfOneMountWhereTimesMayBeConstant) {
  const auto first = pack_version(some_file(), {.number = 3});
  ASSERT_TRUE(first);
  EXPECT_EQ(first, pack_version(some_file(), {.number = 3}));
  EXPECT_NE(first, pack_version(some_file(), {.number = 4}));
  EXPECT_NE(first, pack_version(some_file(), {.shows_changes = true, .number = 3}));
  EXPECT_FALSE(pack_version(some_file(), {.number = 0}))
      << "nothing distinguishes it from the next mount";
}

TEST(PackVersion, AFileThatJustChangedMayChangeOnceMore) {
  protocol::StageStat stat = some_file();
  EXPECT_TRUE(is_settled(stat));
  stat.changed_s = time(nullptr);
  EXPECT_FALSE(is_settled(stat));
  stat.changed_s += 1000;  // the server's clock is ahead
  EXPECT_FALSE(is_settled(stat));
}

TEST(PackVersion, KnowsTheMountOfAFile) {
  const UniqueFd fd(open("/proc/self/status", O_PATH | O_CLOEXEC));
  struct stat about {};
  ASSERT_EQ(fstat(fd.get(), &about), 0);
  const StageMount proc = stage_mount(fd.get(), about.st_dev);
  EXPECT_TRUE(proc.local);
  EXPECT_FALSE(proc.shows_changes);
  const UniqueFd other(open("/dev/null", O_PATH | O_CLOEXEC));
  ASSERT_EQ(fstat(other.get(), &about), 0);
  const StageMount dev = stage_mount(other.get(), about.st_dev);
  EXPECT_TRUE(proc.number == 0 || proc.number != dev.number);
}

}  // namespace
}  // namespace sluice::optimizer
