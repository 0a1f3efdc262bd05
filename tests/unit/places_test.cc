// What is stored of datasets from run to run: its bytes, and the folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "optimizer/io/place_store.h"
#include "policy/samples/place_list.h"

namespace sluice::optimizer {

using policy::place_file_name;
using policy::PlaceList;
namespace {

namespace fs = std::filesystem;

PlaceList some(const std::string& name = "a dataset", uint64_t samples = 100) {
  PlaceList list;
  list.name = name;
  list.samples = samples;
  list.files = {{"/data/one\n\xff", 1ULL << 40, -5}, {"/data/two", 0, 1700000000123456789}};
  list.whole = {"/files/a", "/files/\x01 b"};
  list.parts = {{1ULL << 39, 4096, 7, 0, 0}, {5, 6, 7, 1, 0}, {0, 0, 99, 1, 1}};
  return list;
}

class Folder : public ::testing::Test {
 protected:
  Folder() {
    char name[] = "/tmp/places-XXXXXX";
    root_ = mkdtemp(name);
    store_.folder = root_ / "deep" / "er";
  }
  ~Folder() override { fs::remove_all(root_); }

  fs::path file(const PlaceList& list) const {
    return fs::path(store_.folder) / place_file_name(list.name, list.samples);
  }
  size_t count() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(store_.folder), fs::directory_iterator()));
  }

  fs::path root_;
  PlaceStore store_;
  std::string problem_;
};

TEST(PlaceList, ComesBackAsItWas) {
  for (const PlaceList& list : {some(), PlaceList{"", 1, {}, {}, {}}}) {
    PlaceList back;
    std::string problem;
    ASSERT_TRUE(back.decode(list.encode(), &problem)) << problem;
    EXPECT_EQ(back.name, list.name);
    EXPECT_EQ(back.samples, list.samples);
    EXPECT_EQ(back.files, list.files);
    EXPECT_EQ(back.whole, list.whole);
    EXPECT_EQ(back.parts, list.parts);
  }
}

TEST(PlaceList, EveryDamagedByteIsFound) {
  const std::vector<uint8_t> good = some().encode();
  PlaceList back;
  std::string problem;
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<uint8_t> bad = good;
    bad[at] ^= 1;
    EXPECT_FALSE(back.decode(bad, &problem)) << at;
    EXPECT_FALSE(problem.empty());
    bad.resize(at);
    EXPECT_FALSE(back.decode(bad, &problem)) << at;
  }
}

// Bytes whose hash is right and which make no sense: written by a version with a mistake.
TEST(PlaceList, PartsOfNothingAreRefused) {
  PlaceList back;
  std::string problem;
  for (const PlaceList::Part part :
       {PlaceList::Part{0, 1, 100, 0, 0}, PlaceList::Part{0, 1, 0, 2, 0},
        PlaceList::Part{0, 1, 0, 2, 1}}) {
    PlaceList list = some();
    list.parts.push_back(part);
    EXPECT_FALSE(back.decode(list.encode(), &problem));
  }
  PlaceList list = some();
  list.whole.push_back("relative");
  EXPECT_FALSE(back.decode(list.encode(), &problem));
}

TEST(PlaceList, DatasetsHaveFilesOfTheirOwn) {
  EXPECT_NE(place_file_name("a", 10), place_file_name("a", 11));
  EXPECT_NE(place_file_name("a", 10), place_file_name("b", 10));
}

TEST_F(Folder, StoresAndFinds) {
  EXPECT_FALSE(store_.load("a dataset", 100, &problem_));
  EXPECT_EQ(problem_, "");  // that nothing is stored is no problem
  ASSERT_TRUE(store_.save(some(), &problem_)) << problem_;
  const auto found = store_.load("a dataset", 100, &problem_);
  ASSERT_TRUE(found) << problem_;
  EXPECT_EQ(found->parts, some().parts);
  EXPECT_FALSE(store_.load("a dataset", 101, &problem_));
  EXPECT_FALSE(store_.load("another", 100, &problem_));
  EXPECT_EQ(count(), 1U);
  EXPECT_EQ(fs::status(store_.folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(file(some())).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Folder, ADamagedFileIsSaidAndRemoved) {
  ASSERT_TRUE(store_.save(some(), &problem_));
  fs::resize_file(file(some()), 100);
  EXPECT_FALSE(store_.load("a dataset", 100, &problem_));
  EXPECT_NE(problem_.find(file(some())), std::string::npos) << problem_;
  EXPECT_EQ(count(), 0U);
}

// A link or a pipe that was put there: neither followed nor waited for.
TEST_F(Folder, WhatIsNoFileIsLeftAlone) {
  ASSERT_TRUE(store_.save(some(), &problem_));
  const fs::path path = file(some());
  fs::rename(path, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", path);
  EXPECT_FALSE(store_.load("a dataset", 100, &problem_));
  EXPECT_FALSE(problem_.empty());
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(store_.load("a dataset", 100, &problem_));
  EXPECT_FALSE(problem_.empty());
}

TEST_F(Folder, AFullDiskLeavesWhatWasThere) {
  ASSERT_TRUE(store_.save(some(), &problem_));
  PlaceList larger = some();
  larger.parts.resize(100000, {0, 0, 1, 0, 1});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100 << 10, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_FALSE(store_.save(larger, &problem_));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(problem_.find("File too large"), std::string::npos) << problem_;
  EXPECT_EQ(count(), 1U);  // and nothing half-written
  const auto found = store_.load("a dataset", 100, &problem_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->parts, some().parts);
}

TEST_F(Folder, CannotBeMade) {
  std::ofstream(root_ / "deep") << "a file";
  EXPECT_FALSE(store_.save(some(), &problem_));
  EXPECT_NE(problem_.find(store_.folder), std::string::npos) << problem_;
}

TEST_F(Folder, TheOldestMakeWay) {
  const uint64_t one = some("0").encode().size();
  store_.most_bytes = 3 * one + one / 2;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(store_.save(some(std::to_string(i)), &problem_));
    // File times are no finer than the kernel's clock.
    const timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file(some(std::to_string(i))).c_str(), times, 0), 0);
  }
  EXPECT_EQ(count(), 3U);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(store_.load(std::to_string(i), 100, &problem_).has_value(), i >= 3) << i;
  }
}

TEST_F(Folder, WhatAKilledOptimizerLeftIsRemovedWhenItIsOld) {
  ASSERT_TRUE(store_.save(some(), &problem_));
  const fs::path old = file(some()).string() + "~abcdef";
  const fs::path running = file(some()).string() + "~uvwxyz";
  const fs::path foreign = fs::path(store_.folder) / "notes";
  for (const fs::path& path : {old, running, foreign}) std::ofstream(path) << "x";
  for (const fs::path& path : {old, foreign}) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  ASSERT_TRUE(store_.save(some(), &problem_));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(running));
  EXPECT_TRUE(fs::exists(foreign));
}

}  // namespace
}  // namespace sluice::optimizer
