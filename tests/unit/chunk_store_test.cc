// Chunks that were made ahead: where samples lie, their bytes, and for how long their originals are
// believed to be what was packed.
#include "optimizer/chunks/chunk_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "optimizer/io/clock.h"
#include "optimizer/packs/checksum.h"
#include "optimizer/packs/pack_file.h"
#include "optimizer/packs/pack_folder.h"
#include "policy/util/random.h"

namespace sluice::optimizer {
namespace {

using protocol::PackEntry;
using protocol::PackVersion;
using protocol::StageStat;

constexpr uint64_t kSecond = 1'000'000'000;

std::vector<char> content(int number) {
  return std::vector<char>(1000 + static_cast<size_t>(number) * 7,
                           static_cast<char>('a' + number % 26));
}
std::string path_of(int number) { return "/data/set/" + std::to_string(number); }
PackVersion version(int number) {
  return {.inode = 5, .size = content(number).size(), .modified_s = 100 + number, .changed_s = 200};
}
StageStat stat_now(int number) {
  StageStat stat{};
  stat.device = 9;
  stat.inode = 1000 + static_cast<uint64_t>(number);
  stat.size = content(number).size();
  stat.blocks = 8;
  stat.modified_s = 100 + number;
  stat.changed_s = 200;
  stat.accessed_s = 300 + number;
  stat.mode = S_IFREG | 0644;
  stat.links = 1;
  stat.uid = 7;
  return stat;
}

class ChunkStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "chunks-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    base_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(base_); }

  std::string folder() const { return chunks_folder(base_); }
  // Samples `first` to `last` - 1, in descending order.
  void make(uint32_t chunk, int first, int last) {
    mkdir(folder().c_str(), 0700);
    const UniqueFd fd(open(folder().c_str(), O_RDONLY | O_DIRECTORY));
    PackBuilder builder;
    for (int number = last - 1; number >= first; --number) {
      const std::vector<char> bytes = content(number);
      ASSERT_TRUE(builder.add({path_of(number), 0, bytes.size()}, version(number), bytes,
                              Checksum::of(bytes.data(), bytes.size())));
    }
    ASSERT_EQ(builder.write(fd.get(), pack_name(chunk)), 0);
  }
  std::shared_ptr<ChunkStore> opened() {
    std::string reason;
    auto store = ChunkStore::open(base_, &reason);
    EXPECT_NE(store, nullptr) << reason;
    return store;
  }
  // Changes a byte of a chunk.
  void damage(uint32_t chunk, std::streamoff at) {
    std::fstream file(folder() + "/" + pack_name(chunk), std::ios::in | std::ios::out);
    file.seekg(at);
    const int before = file.get();
    file.seekp(at);
    file.put(static_cast<char>(before ^ 1));
  }
  static std::vector<char> copied(const ChunkRead& read, const PackEntry& member, int* error) {
    const UniqueFd to(memfd_create("copy", MFD_CLOEXEC));
    *error = read.copy(member, to.get());
    std::vector<char> bytes(member.length);
    EXPECT_EQ(pread(to.get(), bytes.data(), bytes.size(), 0),
              *error == 0 ? static_cast<ssize_t>(bytes.size()) : 0);
    return bytes;
  }

  std::string base_;
};

TEST_F(ChunkStoreTest, FindsEverySampleAndReadsItWithItsChunk) {
  make(0, 0, 10);
  make(7, 10, 13);
  const auto store = opened();
  EXPECT_EQ(store->chunks(), 2U);
  EXPECT_EQ(store->samples(), 13U);
  for (int number = 0; number < 13; ++number) {
    const auto place = store->find(path_of(number));
    ASSERT_TRUE(place);
    EXPECT_EQ(place->chunk, number < 10 ? 0U : 1U);
    EXPECT_EQ(store->length(*place), content(number).size());
    const auto read = store->read(place->chunk);
    const PackEntry* const member = read->member(place->entry, path_of(number));
    ASSERT_NE(member, nullptr) << read->problem();
    int error = 0;
    EXPECT_EQ(copied(*read, *member, &error), content(number));
    EXPECT_EQ(error, 0);
    EXPECT_EQ(read->member(place->entry, path_of(number + 1)), nullptr);
    EXPECT_EQ(read->member(99, path_of(number)), nullptr);
  }
  EXPECT_FALSE(store->find(path_of(13)));
  EXPECT_FALSE(store->find(""));
}

TEST_F(ChunkStoreTest, HasNoFolderOrOneThatIsNoOneElses) {
  std::string reason;
  EXPECT_EQ(ChunkStore::open(base_, &reason), nullptr);
  EXPECT_NE(reason.find("there are no chunks"), std::string::npos) << reason;
  mkdir(folder().c_str(), 0700);
  EXPECT_EQ(ChunkStore::open(base_, &reason), nullptr);
  EXPECT_EQ(reason.find('\n'), std::string::npos);
  make(0, 0, 3);
  chmod(folder().c_str(), 0755);
  EXPECT_EQ(ChunkStore::open(base_, &reason), nullptr);
  EXPECT_NE(reason.find("alone"), std::string::npos) << reason;
}

TEST_F(ChunkStoreTest, LeavesDamagedChunksOutAndNoticesDamagedBytes) {
  make(0, 0, 10);
  make(1, 10, 20);
  damage(0, 60);  // of the index
  const auto store = opened();
  EXPECT_EQ(store->chunks(), 1U);
  EXPECT_EQ(store->damaged(), 1U);
  EXPECT_FALSE(store->find(path_of(3)));
  const auto place = store->find(path_of(15));
  ASSERT_TRUE(place);
  auto read = store->read(place->chunk);
  const PackEntry* member = read->member(place->entry, path_of(15));
  ASSERT_NE(member, nullptr);
  damage(1, static_cast<std::streamoff>(member->at) + 5);
  read = store->read(place->chunk);
  member = read->member(place->entry, path_of(15));
  ASSERT_NE(member, nullptr);
  int error = 0;
  copied(*read, *member, &error);
  EXPECT_EQ(error, EBADMSG);
  std::filesystem::resize_file(folder() + "/" + pack_name(1), 500);
  read = store->read(place->chunk);
  EXPECT_EQ(read->member(place->entry, path_of(15)), nullptr);
  EXPECT_FALSE(read->problem().empty());
  std::filesystem::remove(folder() + "/" + pack_name(1));
  read = store->read(place->chunk);
  EXPECT_EQ(read->member(place->entry, path_of(15)), nullptr);
}

// What a crash of the machine leaves of a chunk: blocks that were not written are zeros, or those
// of the chunk that had the name before; the file may be shorter. Its bytes are never taken for
// others.
TEST_F(ChunkStoreTest, DetectsWhatACrashLeavesOfAChunk) {
  constexpr int kSamples = 40, kCrashes = 1000;
  constexpr size_t kBlock = 512;
  make(0, 100, 100 + kSamples);
  const std::string path = folder() + "/" + pack_name(0);
  const auto bytes_of = [&path] {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = bytes_of();
  make(0, 0, kSamples);
  const std::string after = bytes_of();
  const auto place = opened()->find(path_of(0));
  ASSERT_TRUE(place);
  Random random(mixed(1));
  int whole = 0, damaged = 0;
  for (int crash = 0; crash < kCrashes; ++crash) {
    std::string left = after;
    const uint32_t lost = 1 + random.below(8);
    for (uint32_t i = 0; i < lost; ++i) {
      const size_t at = random.below(static_cast<uint32_t>(after.size())) / kBlock * kBlock;
      const size_t size = std::min(kBlock, left.size() - at);
      const bool old = random.below(2) == 0 && at + size <= before.size();
      left.replace(at, size, old ? before.substr(at, size) : std::string(size, '\0'));
    }
    if (random.below(4) == 0) left.resize(random.below(static_cast<uint32_t>(left.size()) + 1));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << left;
    std::string reason;
    const auto store = ChunkStore::open(base_, &reason);
    if (store == nullptr) {
      ++damaged;
      continue;
    }
    const auto read = store->read(0);
    for (int number = 0; number < kSamples; ++number) {
      const auto found = store->find(path_of(number));
      const PackEntry* const member = found ? read->member(found->entry, path_of(number)) : nullptr;
      int error = EBADMSG;
      const std::vector<char> bytes =
          member != nullptr ? copied(*read, *member, &error) : std::vector<char>();
      if (error == 0) {
        ASSERT_EQ(bytes, content(number)) << "crash " << crash;
        ++whole;
      } else {
        ++damaged;
      }
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(damaged, 0);
}

TEST_F(ChunkStoreTest, BelievesAnOriginalAsLongAsItMayBeStale) {
  make(0, 0, 10);
  const auto store = opened();
  const auto place = store->find(path_of(4));
  ASSERT_TRUE(place);
  const auto read = store->read(place->chunk);
  const PackEntry* const member = read->member(place->entry, path_of(4));
  ASSERT_NE(member, nullptr);
  const uint64_t now = now_ns() + 10 * kSecond;
  EXPECT_FALSE(store->checked(*place, *member, 0)) << "nothing was compared yet";
  ASSERT_TRUE(store->check(*place, stat_now(4), now));
  const auto checked = store->checked(*place, *member, now - 2 * kSecond);
  ASSERT_TRUE(checked);
  EXPECT_LE(checked->at_ns, now);
  EXPECT_GT(checked->at_ns + 2 * kSecond, now);
  const StageStat expected = stat_now(4);
  EXPECT_EQ(memcmp(&checked->stat, &expected, sizeof expected), 0);
  EXPECT_FALSE(store->checked(*place, *member, now + kSecond)) << "it is too old";
  store->doubt(path_of(5));
  EXPECT_TRUE(store->checked(*place, *member, 0));
  store->doubt(path_of(4));
  EXPECT_FALSE(store->checked(*place, *member, 0));
  EXPECT_TRUE(store->check(*place, stat_now(4), now));
  store->doubt_all();
  EXPECT_FALSE(store->checked(*place, *member, 0));
}

TEST_F(ChunkStoreTest, DoesNotBelieveWhatChangedOrMayChangeUnseen) {
  make(0, 0, 10);
  const auto store = opened();
  const auto place = store->find(path_of(4));
  const auto read = store->read(place->chunk);
  const PackEntry* const member = read->member(place->entry, path_of(4));
  for (const auto& change : std::vector<void (*)(StageStat*)>{
           [](StageStat* stat) { ++stat->size; }, [](StageStat* stat) { ++stat->modified_s; },
           [](StageStat* stat) { ++stat->modified_ns; }, [](StageStat* stat) { ++stat->changed_s; },
           [](StageStat* stat) { ++stat->changed_ns; }}) {
    StageStat other = stat_now(4);
    change(&other);
    EXPECT_TRUE(store->check(*place, stat_now(4), now_ns()));
    EXPECT_FALSE(store->check(*place, other, now_ns()));
    EXPECT_FALSE(store->checked(*place, *member, 0)) << "what was right before still counts";
  }
  StageStat linked = stat_now(4);
  linked.links = 2;
  EXPECT_TRUE(store->check(*place, linked, now_ns()));
  EXPECT_FALSE(store->checked(*place, *member, 0));
}

}  // namespace
}  // namespace sluice::optimizer
