#include "optimizer/stage/mount_watch.h"

#include <gtest/gtest.h>

namespace sluice::optimizer {
namespace {

TEST(MountWatch, MountPointsAreUnescapedAndNumbered) {
  const auto mounts = mounts_of(
      "21 1 8:1 / / rw - ext4 /dev/sda rw\n"
      "33 21 0:40 / /data/with\\040space rw,relatime shared:1 - fuse.x x rw\n"
      "34 21 0:41 / /back\\134slash rw - tmpfs t rw");
  EXPECT_EQ(mounts, (std::set<std::string>{"21/", "33/data/with space", "34/back\\slash"}));
}

TEST(MountWatch, LinesThatMakeNoSenseAreLeftOut) {
  EXPECT_TRUE(mounts_of("").empty());
  EXPECT_TRUE(mounts_of("\n\n12 3\n1 2 3 4 relative rw\n").empty());
  EXPECT_EQ(mounts_of("1 2 3 4 /a\\04\n"), (std::set<std::string>{"1/a\\04"}));
}

TEST(MountWatch, NothingChangedWithoutAMount) {
  MountWatch watch;
  ASSERT_GE(watch.fd(), 0);
  // Others may mount something meanwhile: asked until it is quiet.
  bool quiet = false;
  for (int turn = 0; turn < 100 && !quiet; ++turn) quiet = watch.changed().empty();
  EXPECT_TRUE(quiet);
}

}  // namespace
}  // namespace sluice::optimizer
