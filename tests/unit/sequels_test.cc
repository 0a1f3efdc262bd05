// Files that follow each other in a numbered row.
#include <gtest/gtest.h>

#include "policy/streams/shard_names.h"
#include "tests/unit/scheduler_world.h"

namespace sluice::policy {
namespace {

using test::kMiB;

struct Row {
  const char *path, *before, *after;
};

TEST(ShardNames, AreTheNeighboursInTheRow) {
  for (const auto& [path, before, after] :
       {Row{"/m/model-00002-of-00008.safetensors", "/m/model-00001-of-00008.safetensors",
            "/m/model-00003-of-00008.safetensors"},
        Row{"/m/model-00001-of-00008.safetensors", "", "/m/model-00002-of-00008.safetensors"},
        Row{"/m/model-00008-of-00008.safetensors", "/m/model-00007-of-00008.safetensors", ""},
        Row{"/d/train-000009.tar", "/d/train-000008.tar", "/d/train-000010.tar"},
        Row{"/d/train-0.tar", "", "/d/train-1.tar"}, Row{"/d/9.npz", "/d/8.npz", "/d/10.npz"},
        Row{"/d7/part99.bin", "/d7/part98.bin", "/d7/part100.bin"}}) {
    const auto names = shard_names(path);
    ASSERT_TRUE(names) << path;
    EXPECT_EQ(names->before, before);
    EXPECT_EQ(names->after, after);
  }
}

TEST(ShardNames, OfNoRowThereAreNone) {
  for (const char* path :
       {"", "/", "/d/7/model.safetensors", "/model", "/d/1234567890.bin", "/d/x-of-3"}) {
    EXPECT_FALSE(shard_names(path)) << path;
  }
}

TEST(ShardNames, SayWhetherTheyAreCounted) {
  EXPECT_TRUE(shard_names("/m/x-00001-of-00002.bin")->of_all);
  EXPECT_FALSE(shard_names("/m/x-00001.bin")->of_all);
}

class SequelTest : public testing::Test {
 protected:
  SequelTest() : world_({0.010, 200e6}, kSize) {
    world_.add_file(FileId{2}, kSize, 1);
    world_.on_read = [this](uint64_t, const PlannedRead& read) {
      asked_[number(read.file)] += read.range.length();
    };
  }
  SequelPlanner& sequels() { return world_.scheduler.streams().sequels(); }
  // From here on, at `rate`.
  void read_to(uint64_t end) {
    constexpr uint64_t kStep = 256 << 10;
    for (; at_ < end; at_ += kStep) {
      uint64_t time = world_.demand(FileId{1}, {at_, at_ + kStep}, world_.now());
      time += kStep * 1000 / 150;  // ns at 150 MB/s
      world_.access(FileId{1}, {Access::Kind::kRead, at_, kStep, time, 1ULL << 32, SessionId{1}});
      world_.advance_to(time);
    }
  }

  static constexpr uint64_t kSize = 160 * kMiB;
  test::World world_;
  uint64_t at_ = 0;
  uint64_t asked_[3] = {};
};

TEST_F(SequelTest, IsAskedForOnceHalfOfTheFileWasRead) {
  read_to(kSize / 4);
  EXPECT_TRUE(sequels().take_begun().empty());
  read_to(kSize * 3 / 4);
  const auto begun = sequels().take_begun();
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0].file, FileId{1});
  EXPECT_EQ(begun[0].session, SessionId{1});
  read_to(kSize);
  EXPECT_TRUE(sequels().take_begun().empty());
}

TEST_F(SequelTest, BeginsWhenNothingIsLeftOfTheFileBefore) {
  read_to(kSize / 2);
  sequels().set(FileId{1}, FileId{2});
  read_to(kSize / 2 + 4 * kMiB);
  EXPECT_EQ(asked_[2], 0U);
  read_to(kSize);
  EXPECT_GE(asked_[2], 16 * kMiB);
  EXPECT_LE(asked_[2], 64 * kMiB);
  EXPECT_LE(asked_[1], kSize);
}

TEST_F(SequelTest, WithoutOneNothingElseIsRead) {
  read_to(kSize);
  EXPECT_EQ(asked_[2], 0U);
}

TEST_F(SequelTest, IsReadOnceInAll) {
  read_to(kSize / 2);
  sequels().set(FileId{1}, FileId{2});
  read_to(kSize);
  for (uint64_t at = 0; at < kSize; at += kMiB) {
    const uint64_t time = world_.demand(FileId{2}, {at, at + kMiB}, world_.now()) + 7'000'000;
    world_.access(FileId{2}, {Access::Kind::kRead, at, kMiB, time, 1ULL << 32, SessionId{1}});
    world_.advance_to(time);
  }
  EXPECT_LE(asked_[2], kSize);
  EXPECT_EQ(world_.scheduler.accounts().outstanding(), 0U);
}

TEST_F(SequelTest, AFileThatIsGoneIsNoSequel) {
  read_to(kSize / 2);
  sequels().set(FileId{1}, FileId{2});
  sequels().set(FileId{1}, FileId{1});
  world_.scheduler.remove_file(FileId{2});
  read_to(kSize);
  EXPECT_EQ(asked_[2], 0U);
}

}  // namespace
}  // namespace sluice::policy
