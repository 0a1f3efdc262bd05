// The packs of a folder: what was added is found again, in this run and in later ones, until it is
// damaged, changed or dropped, and never with other bytes.
#include "optimizer/packs/pack_store.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/process/pack_store_data.h"

namespace sluice::optimizer {
namespace {

using namespace test;
using PackStoreTest = PackStores;

TEST_F(PackStoreTest, FindsWhatWasWritten) {
  fill(2);
  ASSERT_TRUE(add(&*store_, 1000, 77));
  EXPECT_EQ(count(0, 2 * kEach), 2 * kEach);
  EXPECT_FALSE(test::has(&*store_, 1000, 77));  // still being built
  EXPECT_FALSE(has(5000));
  const PackStore::View view = store_->view();
  EXPECT_EQ(view.packs, 2U);
  EXPECT_EQ(view.samples, 2 * kEach);
  EXPECT_EQ(view.useful_bytes, 2 * kEach * kLength);
  EXPECT_EQ(view.bytes, view.written_bytes);
  EXPECT_EQ(view.bytes, fs::file_size(pack(0)) + fs::file_size(pack(1)));
  EXPECT_EQ(view.read_samples, 2 * kEach);
  EXPECT_EQ(view.read_bytes, 2 * kEach * kLength);
  EXPECT_EQ(view.damaged_packs, 0U);
  EXPECT_TRUE(view.adding);
  EXPECT_TRUE(said_.empty());
}

TEST_F(PackStoreTest, StaysFromRunToRun) {
  fill(3);
  reopen();
  EXPECT_EQ(count(0, 3 * kEach), 3 * kEach);
  EXPECT_EQ(store_->view().written_bytes, 0U);
  fill(1, 1000);
  EXPECT_EQ(files(), 5U);
  reopen();
  EXPECT_EQ(count(0, 3 * kEach) + count(1000, 1000 + kEach), 4 * kEach);
  EXPECT_TRUE(said_.empty());
}

TEST_F(PackStoreTest, FlushWritesWhatMakesAPack) {
  settings_.pack_bytes = 4 << 20;
  reopen();
  for (uint64_t i = 0; i < kEach - 1; ++i) ASSERT_TRUE(add(&*store_, i, kLength));
  store_->flush();
  EXPECT_EQ(store_->view().packs, 0U);
  ASSERT_TRUE(add(&*store_, kEach - 1, kLength));
  store_->flush();
  EXPECT_EQ(store_->view().packs, 1U);
  EXPECT_EQ(count(0, kEach), kEach);
  store_->flush();
  EXPECT_EQ(store_->view().packs, 1U);
}

TEST_F(PackStoreTest, WhatIsThereIsAddedOnce) {
  fill(1);
  const UniqueFd from = memory({});  // without a reader
  EXPECT_TRUE(store_->add({path_of(0), 0, kLength}, version(kLength), from.get()));
  ASSERT_TRUE(add(&*store_, 100, kLength));
  EXPECT_TRUE(store_->add({path_of(100), 0, kLength}, version(kLength), from.get()));
  EXPECT_FALSE(store_->add({path_of(101), 0, kLength}, version(kLength), from.get()));
}

TEST_F(PackStoreTest, RefusesWhatNoPackCanHold) {
  const UniqueFd from = memory(contents(0, 10));
  const uint64_t large = PackStore::kMostSample + 1;
  ASSERT_EQ(ftruncate(from.get(), static_cast<off_t>(large)), 0);
  EXPECT_FALSE(store_->add({"/large", 0, large}, version(large), from.get()));
  EXPECT_FALSE(store_->add({"relative", 0, 10}, version(10), from.get()));
  EXPECT_FALSE(store_->add({"/" + std::string(1023, 'x'), 0, 10}, version(10), from.get()));
  EXPECT_FALSE(store_->add({"/beyond", 5, 6}, version(10), from.get()));
  EXPECT_TRUE(store_->view().adding);
  EXPECT_TRUE(store_->add({"/most", 0, large - 1}, version(large - 1), from.get()));
  EXPECT_EQ(store_->view().packs, 1U);
  EXPECT_TRUE(store_->find({"/most", 0, large - 1}, version(large - 1)));
}

TEST_F(PackStoreTest, AnotherVersionIsForgotten) {
  fill(1);
  EXPECT_FALSE(has(3, 1));
  EXPECT_FALSE(has(3, 0)) << "it was forgotten";
  EXPECT_EQ(store_->view().samples, kEach - 1);
  // A file that has grown is the same file.
  EXPECT_FALSE(test::has(&*store_, 4, kLength + 1));
  EXPECT_FALSE(has(4));
  // Each of the things that distinguish versions.
  for (const auto& [number, change] :
       std::initializer_list<std::pair<uint64_t, void (*)(PackVersion*)>>{
           {5, [](PackVersion* v) { ++v->inode; }},
           {6, [](PackVersion* v) { ++v->modified_s; }},
           {7, [](PackVersion* v) { --v->modified_ns; }},
           {8, [](PackVersion* v) { ++v->changed_s; }},
           {9, [](PackVersion* v) { ++v->changed_ns; }}}) {
    PackVersion other = version(kLength);
    change(&other);
    EXPECT_FALSE(store_->find({path_of(number), 0, kLength}, other));
    EXPECT_FALSE(has(number));
  }
  EXPECT_EQ(count(10, kEach), kEach - 10);
}

TEST_F(PackStoreTest, ANewVersionTakesTheOldOnesPlace) {
  fill(1);
  fill(1, 0, 1);
  fill(1, 100);  // and what of the new ones is still being built
  EXPECT_EQ(count(0, kEach, 1), kEach);
  EXPECT_FALSE(fs::exists(pack(0)));
  EXPECT_EQ(files(), 1 + store_->view().packs);
}

TEST_F(PackStoreTest, PartsAndWholeFilesAreEachTheirOwn) {
  settings_.pack_bytes = 4 << 20;
  reopen();
  const std::string path = "/data/file";
  constexpr uint64_t kSize = 600'000;
  const std::vector<char> whole = contents(1, kSize);
  const UniqueFd from = memory(whole);
  const PackKey keys[] = {{path, 0, kSize},
                          {path, 0, 400'000},
                          {path, 100, 400'000},
                          {path, 100, 1000},
                          {path, kSize, 0}};
  for (const PackKey& key : keys) {
    const UniqueFd part = memory({whole.begin() + static_cast<ptrdiff_t>(key.offset),
                                  whole.begin() + static_cast<ptrdiff_t>(key.offset + key.length)});
    ASSERT_TRUE(store_->add(key, version(kSize), part.get()));
  }
  store_->flush();
  for (const PackKey& key : keys) {
    const PackStore::Found found = store_->find(key, version(kSize));
    ASSERT_TRUE(found) << key.offset << " " << key.length;
    const UniqueFd to = memory({});
    ASSERT_EQ(store_->copy(found, to.get()), 0);
    EXPECT_EQ(all_of(to.get()),
              std::vector<char>(whole.begin() + static_cast<ptrdiff_t>(key.offset),
                                whole.begin() + static_cast<ptrdiff_t>(key.offset + key.length)));
  }
  store_->drop(keys[1]);
  EXPECT_FALSE(store_->find(keys[1], version(kSize)));
  EXPECT_TRUE(store_->find(keys[0], version(kSize)));
  store_->drop(keys[0]);
  EXPECT_FALSE(store_->find(keys[0], version(kSize)));
  EXPECT_TRUE(store_->find(keys[2], version(kSize)));
}

TEST_F(PackStoreTest, TheNewerOfTwoWinsInTheNextRun) {
  fill(1);
  const std::vector<char> old = read_file(pack(0));
  fill(1, 0, 1);  // removes the first
  fill(1, 100);   // and what of the new ones is still being built
  write_file(pack(0), old);
  reopen();
  EXPECT_EQ(count(0, kEach, 1), kEach);
  EXPECT_FALSE(fs::exists(pack(0))) << "of no use";
}

TEST_F(PackStoreTest, ADamagedPackIsForgotten) {
  fill(2);
  std::vector<char> bytes = read_file(pack(0));
  bytes[bytes.size() - 10] ^= 1;
  write_file(pack(0), bytes);
  const PackStore::Found found = find(&*store_, kEach - 1, kLength);
  ASSERT_TRUE(found);
  const UniqueFd to = memory({});
  EXPECT_EQ(store_->copy(found, to.get()), EBADMSG);
  store_->damaged(found);
  store_->damaged(found);
  EXPECT_EQ(store_->view().damaged_packs, 1U);
  EXPECT_EQ(store_->view().read_samples, 0U);
  EXPECT_FALSE(fs::exists(pack(0)));
  EXPECT_EQ(count(0, kEach), 0U);
  EXPECT_EQ(count(kEach, 2 * kEach), kEach);
  fill(1);  // as if never packed
  EXPECT_EQ(count(0, 2 * kEach), 2 * kEach);
}

TEST_F(PackStoreTest, WhatWasFoundStaysReadable) {
  fill(1);
  PackStore::Found found = find(&*store_, 3, kLength);
  ASSERT_TRUE(found);
  store_->damaged(found);
  EXPECT_FALSE(fs::exists(pack(0)));
  const UniqueFd to = memory({});
  EXPECT_EQ(store_->copy(found, to.get()), 0);
  EXPECT_EQ(all_of(to.get()), contents(3, kLength));
  const auto holds_pack = [this] {
    for (const auto& file : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (fs::read_symlink(file, gone).string().starts_with(pack(0).string())) return true;
    }
    return false;
  };
  EXPECT_TRUE(holds_pack());
  found = {};
  EXPECT_FALSE(holds_pack()) << "its room on the disk would stay taken";
}

TEST_F(PackStoreTest, PacksThatOthersRemoveOrChangeAreMisses) {
  fill(4);
  reopen();  // nothing is open
  fs::remove(pack(0));
  fs::resize_file(pack(1), 100);
  fs::copy_file(pack(3), pack(2), fs::copy_options::overwrite_existing);
  EXPECT_EQ(count(0, 3 * kEach), 0U);
  EXPECT_EQ(count(3 * kEach, 4 * kEach), kEach);
  EXPECT_EQ(store_->view().damaged_packs, 1U);
  EXPECT_FALSE(fs::exists(pack(1)));
}

TEST_F(PackStoreTest, FewPacksAreOpenAtATime) {
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  constexpr uint64_t kPacks = 60;
  fill(kPacks);
  const auto before = open_files();
  settings_.most_open = 32;
  reopen();
  for (uint64_t i = 0; i < kPacks * kEach; i += kEach) EXPECT_TRUE(has(i));
  EXPECT_LE(open_files() - before, 32);
  for (uint64_t i = 0; i < kPacks * kEach; i += kEach) EXPECT_TRUE(has(i));
}

TEST_F(PackStoreTest, BeginsByRemovingWhatIsNoPack) {
  fill(3);
  store_.reset();
  std::vector<char> bytes = read_file(pack(0));
  bytes[100] ^= 1;
  write_file(pack(0), bytes);
  fs::resize_file(pack(1), 5000);
  write_file(pack(7), {'n', 'o', 'n', 'e'});
  fs::create_symlink("/etc/passwd", pack(8));
  write_file(folder() / "00000009.pack.part", contents(1, 100));
  const std::vector<std::string> others = {"00000001.pac",  "0000000A.pack",      "readme",
                                           "x0000001.pack", "000000001.pack",     "0000001.pack",
                                           "readme.part",   "00000001.pack.part~"};
  for (const std::string& name : others) write_file(folder() / name, contents(1, 10));
  reopen();
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder() / name)) << name;
  EXPECT_EQ(files(), 2 + others.size());  // the good pack, and the lock
  EXPECT_EQ(count(2 * kEach, 3 * kEach), kEach);
  EXPECT_EQ(store_->view().damaged_packs, 4U);
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_NE(said_[0].find("4 packs"), std::string::npos) << said_[0];
  EXPECT_EQ(said_[0].find('\n'), std::string::npos);
}

TEST_F(PackStoreTest, TheOldestGoBeyondTheBound) {
  fill(5);
  settings_.most_bytes = store_->view().bytes - fs::file_size(pack(0)) - 1000;
  reopen();
  EXPECT_EQ(store_->view().packs, 3U);
  EXPECT_EQ(files(), 4U);
  EXPECT_EQ(count(2 * kEach, 5 * kEach), 3 * kEach);
  EXPECT_LE(store_->view().bytes, settings_.most_bytes);
  settings_.most_samples = kEach;
  reopen();
  EXPECT_EQ(store_->view().packs, 1U);
  EXPECT_EQ(count(4 * kEach, 5 * kEach), kEach);
}

TEST_F(PackStoreTest, TakesNoMoreThanItMay) {
  settings_.most_bytes = 5 << 20;
  reopen();
  uint64_t added = 0;
  for (uint64_t i = 0; i < 10 * kEach; ++i) added += add(&*store_, i, kLength) ? 1 : 0;
  EXPECT_LT(added * kLength, 5U << 20);
  EXPECT_GT(added * kLength, 4U << 20);
  EXPECT_FALSE(store_->view().adding);
  EXPECT_LE(store_->view().bytes, settings_.most_bytes);
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_EQ(said_[0].find('\n'), std::string::npos);
  EXPECT_EQ(count(0, 4 * kEach), 4 * kEach) << "reading continues";
  // Where something is removed there is room again.
  store_->damaged(find(&*store_, 0, kLength));
  EXPECT_TRUE(add(&*store_, 5000, kLength));
  EXPECT_TRUE(store_->view().adding);
}

TEST_F(PackStoreTest, TakesNoMoreSamplesThanItMay) {
  settings_.most_samples = 30;
  reopen();
  for (uint64_t i = 0; i < 30; ++i) EXPECT_TRUE(add(&*store_, i, kLength));
  EXPECT_FALSE(add(&*store_, 30, kLength));
  EXPECT_EQ(said_.size(), 1U);
}

TEST_F(PackStoreTest, LeavesRoomOnTheFileSystem) {
  fill(1);
  settings_.least_free_percent = 101;
  reopen();
  EXPECT_FALSE(add(&*store_, 1000, kLength));
  EXPECT_FALSE(add(&*store_, 1001, kLength));
  EXPECT_EQ(said_.size(), 1U);
  EXPECT_EQ(count(0, kEach), kEach);
}

TEST_F(PackStoreTest, AFailingDiskEndsAdding) {
  fill(1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  std::vector<UniqueFd> copies;
  for (uint64_t i = 0; i < kEach; ++i) copies.push_back(memory(contents(100 + i, kLength)));
  const rlimit low{500'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  for (uint64_t i = 0; i < kEach; ++i) {
    store_->add({path_of(100 + i), 0, kLength}, version(kLength), copies[i].get());
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(store_->view().adding);
  EXPECT_FALSE(add(&*store_, 200, kLength));
  EXPECT_EQ(said_.size(), 1U);
  EXPECT_EQ(count(0, kEach), kEach);
  EXPECT_EQ(files(), 2U) << "nothing half-written is left";
  reopen();
  fill(1, 100);
}

// In a child of its own, whose mounts are private.
TEST_F(PackStoreTest, AFullFileSystemEndsAdding) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kSkip = 77;
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", root_.path.c_str(), "tmpfs", 0, "size=3584k") != 0) {
      _exit(kSkip);
    }
    reopen();
    for (uint64_t i = 0; i < 5 * kEach; ++i) add(&*store_, i, kLength);
    const bool good = !store_->view().adding && said_.size() == 1 &&
                      said_[0].find("No space left") != std::string::npos &&
                      count(0, 5 * kEach) == 3 * kEach && files() == 4;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(PackStoreTest, HasItsFolderAlone) {
  PackStore second;
  std::string reason;
  EXPECT_FALSE(second.open(settings_, &reason));
  EXPECT_NE(reason.find("in use"), std::string::npos);
  store_.reset();
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
  fs::permissions(folder(), fs::perms::group_read, fs::perm_options::add);
  PackStore open_to_others;
  EXPECT_FALSE(open_to_others.open(settings_, &reason));
  EXPECT_NE(reason.find("not this user's alone"), std::string::npos) << reason;
  fs::permissions(folder(), fs::perms::owner_all);
  fs::rename(folder(), root_.path / "elsewhere");
  fs::create_directory_symlink(root_.path / "elsewhere", folder());
  PackStore behind_link;
  EXPECT_FALSE(behind_link.open(settings_, &reason));
  PackStore nowhere;
  settings_.base = root_.path / "none";
  EXPECT_FALSE(nowhere.open(settings_, &reason));
  EXPECT_EQ(reason.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace sluice::optimizer
