// Where the optimizer listens: both sides must come to the same name.
#include "protocol/place.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/version.h"

namespace sluice::protocol {
namespace {

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

TEST(MemoryCgroup, KnownVectorOfTheHash) {
  EXPECT_EQ(memory_cgroup_hash("0::a\n"), 0xaf63dc4c8601ec8cULL);
}

TEST(MemoryCgroup, Version2) {
  EXPECT_EQ(memory_cgroup_hash("0::/user.slice/job\n"), fnv1a("/user.slice/job"));
  EXPECT_EQ(memory_cgroup_hash("0::/user.slice/job"), fnv1a("/user.slice/job"));
  EXPECT_EQ(memory_cgroup_hash("0::/with:colon\n"), fnv1a("/with:colon"));
}

TEST(MemoryCgroup, Version1WithSeveralControllers) {
  const char* text =
      "12:pids:/p\n"
      "5:cpu,cpuacct:/c\n"
      "4:hugetlb,memory,perf_event:/jobs/7\n"
      "1:name=systemd:/s\n"
      "0::/unified\n";
  EXPECT_EQ(memory_cgroup_hash(text), fnv1a("/jobs/7"));
}

TEST(MemoryCgroup, TheMemoryLineWinsWhereverItStands) {
  EXPECT_EQ(memory_cgroup_hash("0::/unified\n9:memory:/v1\n"), fnv1a("/v1"));
  EXPECT_EQ(memory_cgroup_hash("9:memory:/v1\n0::/unified\n"), fnv1a("/v1"));
}

TEST(MemoryCgroup, OtherNamesAreNotMemory) {
  EXPECT_EQ(memory_cgroup_hash("3:memoryx:/a\n2:xmemory:/b\n1:name=memory:/c\n0::/u\n"),
            fnv1a("/u"));
  EXPECT_EQ(memory_cgroup_hash("3:cpu:/memory\n1:name=systemd:/s\n"), 0U);
}

TEST(MemoryCgroup, EmptyOrTorn) {
  EXPECT_EQ(memory_cgroup_hash(""), 0U);
  EXPECT_EQ(memory_cgroup_hash("\n\n"), 0U);
  EXPECT_EQ(memory_cgroup_hash("4:memory"), 0U);
  EXPECT_EQ(memory_cgroup_hash("4"), 0U);
  EXPECT_EQ(memory_cgroup_hash("garbage\n4:memory\n0::/u\n"), fnv1a("/u"));
  EXPECT_EQ(memory_cgroup_hash("4:memory:\n"), fnv1a(""));
}

TEST(SocketPlace, FolderAndPath) {
  char folder[64];
  char path[128];
  ASSERT_TRUE(socket_folder(folder, sizeof folder, 1000));
  EXPECT_STREQ(folder, "/tmp/sluice-1000");
  ASSERT_TRUE(socket_path(path, sizeof path, 1000, 0xf0000001, 0xab));
  EXPECT_EQ(path, std::string(folder) + "/v" + std::to_string(kVersion) +
                      "-f0000001-00000000000000ab.sock");
}

TEST(SocketPlace, EveryPartDistinguishesOptimizers) {
  const auto path = [](uint32_t uid, uint64_t mounts, uint64_t cgroup) {
    char out[128];
    EXPECT_TRUE(socket_path(out, sizeof out, uid, mounts, cgroup));
    return std::string(out);
  };
  EXPECT_NE(path(1, 2, 3), path(2, 2, 3));
  EXPECT_NE(path(1, 2, 3), path(1, 3, 3));
  EXPECT_NE(path(1, 2, 3), path(1, 2, 4));
}

// A Unix socket's address holds 108 bytes, the NUL included.
TEST(SocketPlace, TheLongestFitsASocketAddress) {
  char path[108];
  EXPECT_TRUE(socket_path(path, sizeof path, UINT32_MAX, UINT64_MAX, UINT64_MAX));
}

TEST(SocketPlace, TooSmallIsSaid) {
  char out[128];
  EXPECT_TRUE(socket_folder(out, sizeof "/tmp/sluice-7", 7));
  EXPECT_FALSE(socket_folder(out, sizeof "/tmp/sluice-7" - 1, 7));
  EXPECT_FALSE(socket_folder(out, 0, 7));
  EXPECT_FALSE(socket_path(out, 20, 7, 1, 1));
}

}  // namespace
}  // namespace sluice::protocol
