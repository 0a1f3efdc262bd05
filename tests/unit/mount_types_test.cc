// Which mounts count as slow, by the kernel's table of them.
#include "preload/data/mount_types.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::preload {
namespace {

const char* const kTable =
    "22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
    "23 22 0:21 / /proc rw,nosuid shared:1 - proc proc rw\n"
    "36 35 0:45 / /data/a\\040-\\040b rw,noatime master:1 - fuse.slowfs slowfs rw,user_id=0\n"
    "37 35 0:450 / /nfs rw shared:7 master:2 - nfs4 server:/x rw,vers=4.2\n"
    "38 35 0:46 / /run rw - tmpfs none rw\n"
    "39 35 1:46 / /other rw - ext2 none rw\n";

std::string type_of(uint32_t minor, const std::string& table = kTable) {
  MountTypes types(minor);
  for (const char byte : table) {
    if (types.feed(byte)) return types.type();
  }
  return "";
}

TEST(MountTypes, FindsTheTypeOfEachDevice) {
  EXPECT_EQ(type_of(21), "proc");
  EXPECT_EQ(type_of(45), "fuse.slowfs");
  EXPECT_EQ(type_of(450), "nfs4");
  EXPECT_EQ(type_of(46), "tmpfs");
  EXPECT_EQ(type_of(4), "");
  EXPECT_EQ(type_of(0), "");
}

TEST(MountTypes, OddLinesAreNone) {
  EXPECT_EQ(type_of(5, "1 2 0:5 / / rw\n"), "");
  EXPECT_EQ(type_of(5, "1 2 0:5\n\n1 2 0:5 / / rw - \n"), "");
  EXPECT_EQ(type_of(5, "1 2 0:5x / / rw - nfs s rw\n1 2 0:5 / / rw - cifs\n"), "cifs");
  EXPECT_EQ(type_of(5, "1 2 0:5 / /" + std::string(5000, 'a') + " rw - ceph c rw\n"), "ceph");
}

TEST(MountTypes, KnowsWhichAreRemote) {
  for (const char* type : {"nfs", "nfs4", "fuse", "fuse.sshfs", "cifs", "lustre", "9p"}) {
    EXPECT_TRUE(is_remote_type(type)) << type;
  }
  for (const char* type : {"ext4", "tmpfs", "overlay", "btrfs", "fuseblk", "proc", "nfsd", ""}) {
    EXPECT_FALSE(is_remote_type(type)) << type;
  }
}

}  // namespace
}  // namespace sluice::preload
