// The index that jobs read, its keys and paths, and the folder, copies and changes behind it.
#include "optimizer/stage/stage_index.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "optimizer/io/residency.h"
#include "optimizer/stage/stage_copy.h"
#include "optimizer/stage/stage_folder.h"
#include "optimizer/stage/stage_watch.h"
#include "protocol/stage_io.h"

namespace sluice::optimizer {

using policy::StagePlan;
namespace {

using protocol::Stage;
using protocol::StageCopy;
using protocol::StageState;

std::string absolute(const std::string& folder, const std::string& path) {
  char out[protocol::kStagePath];
  const size_t length =
      protocol::stage_path(out, folder.data(), folder.size(), path.data(), path.size());
  return {out, length};
}

TEST(StagePath, OneNameForOnePath) {
  EXPECT_EQ(absolute("/here", "a/b"), "/here/a/b");
  EXPECT_EQ(absolute("/here/", "./a//b"), "/here/a/b");
  EXPECT_EQ(absolute("/", "a"), "/a");
  EXPECT_EQ(absolute("/here", "/a/./b"), "/a/b");
  EXPECT_EQ(absolute("/here", "//a///b"), "/a/b");
  EXPECT_EQ(absolute("", "/a"), "/a");
  EXPECT_EQ(absolute("/here", ".hidden"), "/here/.hidden");
  EXPECT_EQ(absolute("/here", "a."), "/here/a.");
}

TEST(StagePath, WhatDotsMeanDependsOnLinks) {
  EXPECT_EQ(absolute("/here", "../a"), "/here/../a");
  EXPECT_EQ(absolute("/here", "a/../b"), "/here/a/../b");
}

TEST(StagePath, AskingForAFolderIsNoFile) {
  EXPECT_EQ(absolute("/here", "a/"), "");
  EXPECT_EQ(absolute("/here", "a/."), "");
  EXPECT_EQ(absolute("/here", "."), "");
  EXPECT_EQ(absolute("/here", ""), "");
  EXPECT_EQ(absolute("", "a"), "") << "it is unknown where";
}

TEST(StagePath, TooLongIsNothing) {
  const std::string most(protocol::kStagePath - 2, 'x');
  EXPECT_EQ(absolute("", "/" + most), "/" + most);
  EXPECT_EQ(absolute("", "/" + most + "x"), "");
}

TEST(StageKey, IsSipHashOfItsReference) {
  // The reference's first vectors for 128 bits: key 00 01 ... 0f, input 00 01 ... (length - 1).
  const uint64_t secret[2] = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
  char input[64];
  for (int i = 0; i < 64; ++i) input[i] = static_cast<char>(i);
  const protocol::StageKey empty = protocol::stage_key(secret, input, 0);
  EXPECT_EQ(empty.low, 0xe6a825ba047f81a3ULL);
  EXPECT_EQ(empty.high, 0x930255c71472f66dULL);
  const protocol::StageKey one = protocol::stage_key(secret, input, 1);
  EXPECT_EQ(one.low, 0x44af996bd8c187daULL);
  EXPECT_EQ(one.high, 0x45fc229b11597634ULL);
}

class StageIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    ASSERT_TRUE(index.create("/dev/shm", -1, &reason)) << reason;
    void* memory = mmap(nullptr, sizeof(Stage), PROT_READ, MAP_SHARED, index.fd(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    stage = static_cast<const Stage*>(memory);
  }
  void TearDown() override { munmap(const_cast<Stage*>(stage), sizeof(Stage)); }

  uint32_t find(const std::string& path, StageCopy* copy, StageState* state) const {
    return protocol::find_copy(
        *stage, protocol::stage_key(stage->header.secret, path.data(), path.size()), copy, state);
  }

  StageIndex index;
  const Stage* stage = nullptr;
  StageCopy copy{};
  StageState state{};
};

TEST_F(StageIndexTest, AJobCannotWriteIt) {
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, index.fd(), 0), MAP_FAILED);
  EXPECT_EQ(ftruncate(index.fd(), 4096), -1);
}

TEST_F(StageIndexTest, AFileIsFoundFromItsFetchToItsEnd) {
  EXPECT_EQ(find("/a", &copy, &state), protocol::kNoStageFile);
  const uint32_t record = index.add("/a");
  EXPECT_EQ(find("/a", &copy, &state), record);
  EXPECT_EQ(state, StageState::kFetching);
  StageCopy copy{};
  copy.name = 7;
  copy.stat.size = 1234;
  index.publish(record, copy);
  EXPECT_EQ(find("/a", &copy, &state), record);
  EXPECT_EQ(state, StageState::kStaged);
  EXPECT_EQ(copy.name, 7U);
  EXPECT_EQ(copy.stat.size, 1234U);
  EXPECT_EQ(find("/b", &copy, &state), protocol::kNoStageFile);
  index.remove(record);
  EXPECT_EQ(find("/a", &copy, &state), protocol::kNoStageFile);
  EXPECT_EQ(stage->header.files.load(), 0U);
}

TEST_F(StageIndexTest, RecordsAreUsedAgain) {
  const uint32_t record = index.add("/a");
  index.remove(record);
  EXPECT_EQ(index.add("/b"), record);
  EXPECT_EQ(find("/a", &copy, &state), protocol::kNoStageFile);
}

TEST_F(StageIndexTest, ManyFilesAreAllFound) {
  constexpr int kMany = 50000;
  for (int i = 0; i < kMany; ++i)
    ASSERT_NE(index.add("/d/" + std::to_string(i)), StageIndex::kNone);
  for (int i = 0; i < kMany; ++i) {
    ASSERT_NE(find("/d/" + std::to_string(i), &copy, &state), protocol::kNoStageFile) << i;
  }
}

TEST_F(StageIndexTest, AReaderSeesARecordWholeOrNotAtAll) {
  const uint32_t record = index.add("/a");
  std::atomic<bool> done{false};
  uint64_t torn = 0;
  uint64_t seen = 0;
  std::thread reader([&] {
    while (!done.load()) {
      StageCopy mine;
      StageState as;
      if (find("/a", &mine, &as) == protocol::kNoStageFile) continue;
      ++seen;
      torn += mine.stat.size != mine.name || mine.stat.inode != mine.name ? 1 : 0;
    }
  });
  for (uint64_t i = 1; i <= 200000; ++i) {
    StageCopy copy{};
    copy.name = copy.stat.size = copy.stat.inode = i;
    index.publish(record, copy);
  }
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_GT(seen, 0U);
}

class StageFiles : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stage-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    std::string reason;
    ASSERT_TRUE(stage.create("", &reason)) << reason;
    rules.any_mount = true;
    rules.most_bytes = 1 << 20;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, const std::string& content) {
    std::ofstream(folder + "/" + name) << content;
    return folder + "/" + name;
  }
  std::string staged(uint64_t name) const {
    char path[protocol::kStageName];
    protocol::stage_name(path, stage.path().c_str(), name);
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder;
  StageFolder stage;
  CopyRules rules;
};

TEST(StageFolder, ASmallFileSystemIsLeftToOthers) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(StageFolder::room_in(64 * kMiB, 64 * kMiB, 0), 8 * kMiB);
  EXPECT_EQ(StageFolder::room_in(64 * kMiB, 56 * kMiB, 8 * kMiB), 8 * kMiB) << "all is its own";
  EXPECT_EQ(StageFolder::room_in(64 * kMiB, 12 * kMiB, 8 * kMiB), (20 * kMiB) / 8) << "others came";
  EXPECT_EQ(StageFolder::room_in(64 * kMiB, 0, 0), 0U);
  EXPECT_EQ(StageFolder::room_in(4096 * kMiB, 1000 * kMiB, 50 * kMiB), 950 * kMiB);
  EXPECT_EQ(StageFolder::room_in(0, 0, 0), UINT64_MAX) << "without a limit of its own";
}

// A copy leaves the page cache as it was.
TEST_F(StageFiles, PagesThatWereCachedBeforeStay) {
  constexpr uint64_t kSize = 1 << 20;
  const std::string path = write("cached", std::string(kSize, 'x'));
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(fdatasync(fd.get()), 0);
  uint64_t before = 0;
  if (!cached_exactly(fd.get(), {0, kSize}, false, &before) || before != kSize) {
    GTEST_SKIP() << "this file system or kernel does not report what is cached";
  }
  const auto copied = [&](uint64_t name) {
    EXPECT_TRUE(copy_in(path, stage.fd(), name, rules).good);
    uint64_t bytes = 0;
    EXPECT_TRUE(cached_exactly(fd.get(), {0, kSize}, false, &bytes));
    return bytes;
  };
  EXPECT_EQ(copied(5), kSize);
  // Half of it is cached, about: the kernel drops and reads several pages as one.
  ASSERT_EQ(posix_fadvise(fd.get(), 0, kSize, POSIX_FADV_DONTNEED), 0);
  ASSERT_EQ(posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM), 0);
  std::string half(kSize / 2, ' ');
  ASSERT_EQ(pread(fd.get(), half.data(), half.size(), 0), static_cast<ssize_t>(half.size()));
  ASSERT_TRUE(cached_exactly(fd.get(), {0, kSize}, false, &before));
  ASSERT_LT(before, kSize);
  const uint64_t after = copied(6);
  EXPECT_GE(after, before) << "what was there stays";
  EXPECT_LT(after, kSize) << "its own reads go";
  ASSERT_EQ(posix_fadvise(fd.get(), 0, kSize, POSIX_FADV_DONTNEED), 0);
  EXPECT_EQ(copied(7), 0U);
}

TEST_F(StageFiles, ACopyHasTheSameBytesAndTheOriginalsAttributes) {
  std::string content(300000, 'x');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  const std::string path = write("a", content);
  struct stat about {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  const CopyResult result = copy_in(path, stage.fd(), 5, rules);
  ASSERT_TRUE(result.good) << result.why;
  EXPECT_EQ(staged(5), content);
  EXPECT_EQ(result.stat.inode, about.st_ino);
  EXPECT_EQ(result.stat.device, about.st_dev);
  EXPECT_EQ(result.stat.mode, about.st_mode);
  EXPECT_EQ(result.stat.modified_ns, about.st_mtim.tv_nsec);
  EXPECT_GE(result.charged, content.size());
  struct stat after {};
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_atim.tv_nsec, about.st_atim.tv_nsec) << "it was not read";
}

TEST_F(StageFiles, AnEmptyFileIsAFile) {
  const CopyResult result = copy_in(write("a", ""), stage.fd(), 5, rules);
  EXPECT_TRUE(result.good) << result.why;
  EXPECT_EQ(access((stage.path() + "/0000000000000005").c_str(), F_OK), 0);
}

TEST_F(StageFiles, OnlyRegularFiles) {
  EXPECT_EQ(copy_in(folder, stage.fd(), 5, rules).failure, StagePlan::Failure::kError);
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(copy_in(pipe, stage.fd(), 5, rules).failure, StagePlan::Failure::kError);
  EXPECT_EQ(copy_in("/dev/null", stage.fd(), 5, rules).failure, StagePlan::Failure::kError);
  EXPECT_EQ(copy_in(folder + "/none", stage.fd(), 5, rules).failure, StagePlan::Failure::kError);
  const CopyResult large =
      copy_in(write("a", std::string((1 << 20) + 1, 'x')), stage.fd(), 5, rules);
  EXPECT_FALSE(large.good);
  rules.any_mount = false;
  EXPECT_EQ(copy_in(write("b", "x"), stage.fd(), 5, rules).failure, StagePlan::Failure::kMount);
}

TEST_F(StageFiles, ALookSeesEveryKindOfChange) {
  const std::string path = write("a", "content");
  const CopyResult copy = copy_in(path, stage.fd(), 5, rules);
  ASSERT_TRUE(copy.good);
  EXPECT_TRUE(recheck(path, copy.stat).good);
  write("a", "CONTENT");
  EXPECT_FALSE(recheck(path, copy.stat).good);
  const CopyResult second = copy_in(path, stage.fd(), 6, rules);
  write("b", "CONTENT");
  ASSERT_EQ(rename((folder + "/b").c_str(), path.c_str()), 0);
  EXPECT_FALSE(recheck(path, second.stat).good);
  const CopyResult third = copy_in(path, stage.fd(), 7, rules);
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_FALSE(recheck(path, third.stat).good);
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_FALSE(recheck(path, third.stat).good);
}

TEST_F(StageFiles, ASymbolicLinkIsKnownAsOne) {
  write("a", "content");
  ASSERT_EQ(symlink("a", (folder + "/link").c_str()), 0);
  EXPECT_EQ(copy_in(folder + "/link", stage.fd(), 5, rules).flags, protocol::kStageLink);
  EXPECT_EQ(copy_in(folder + "/a", stage.fd(), 6, rules).flags, 0U);
}

TEST_F(StageFiles, TheFolderIsRemovedByItsOptimizerOrTheNext) {
  std::string path;
  {
    StageFolder own;
    std::string reason;
    ASSERT_TRUE(own.create("", &reason)) << reason;
    path = own.path();
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
    EXPECT_EQ(StageFolder::remove_leftovers(), 0U) << "its holder lives";
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  // What a killed one leaves: the folder, without a holder of its lock.
  const std::string left = stage.path().substr(0, stage.path().rfind('/')) + "/1-1";
  ASSERT_EQ(mkdir(left.c_str(), 0700), 0);
  std::ofstream(left + "/lock") << "";
  std::ofstream(left + "/0000000000000001") << "copy";
  EXPECT_EQ(StageFolder::remove_leftovers(), 1U);
  EXPECT_NE(access(left.c_str(), F_OK), 0);
}

TEST_F(StageFiles, ChangesAreSeenBeforeTheCallThatMadeThemReturns) {
  StageWatch watch;
  const std::string path = write("a", "content");
  ASSERT_TRUE(watch.add(folder));
  const auto changed = [&](const std::string& what) {
    std::vector<StageWatch::Change> changes;
    bool lost = false;
    watch.read(&changes, &lost);
    for (const auto& change : changes) {
      if (change.path == what) return true;
    }
    return lost;
  };
  EXPECT_FALSE(changed(path));
  {
    std::ifstream in(path);
    in.get();
  }
  EXPECT_FALSE(changed(path)) << "reading is no change";
  write("a", "other");
  EXPECT_TRUE(changed(path));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(changed(path));
  ASSERT_EQ(rename(path.c_str(), (folder + "/b").c_str()), 0);
  EXPECT_TRUE(changed(path));
  const std::string moved = folder + "-moved";
  ASSERT_EQ(rename(folder.c_str(), moved.c_str()), 0);
  EXPECT_TRUE(changed(folder));
  ASSERT_EQ(rename(moved.c_str(), folder.c_str()), 0);
}

}  // namespace
}  // namespace sluice::optimizer
