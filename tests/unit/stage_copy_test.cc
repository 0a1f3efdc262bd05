// A copy's bytes come whole from the log, from a pack, or from the original.
#include "optimizer/stage/stage_copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimizer/chunks/log_files.h"
#include "optimizer/packs/pack_store.h"
#include "optimizer/stage/copy_parts.h"
#include "optimizer/stage/pack_version.h"
#include "optimizer/stage/stage_folder.h"
#include "tests/unit/pack_data.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kSize = 2 << 20;  // enough for a pack

// From now on a write beyond `bytes` of a file fails, once: the signal that it causes ends that.
void fail_one_write(rlim_t bytes) {
  struct sigaction action {};
  action.sa_handler = [](int) {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  sigaction(SIGXFSZ, &action, nullptr);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

class StageCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = root_.path / "sample";
    bytes_ = test::contents(1, kSize);
    test::write_file(path_, bytes_);
    UniqueFd place;
    rules_.any_mount = true;
    rules_.most_bytes = 1 << 30;
    about_ = examine(path_, rules_, &place, &mount_);
    ASSERT_TRUE(about_.good) << about_.why;
  }

  void pack() {
    const std::optional<protocol::PackVersion> version = pack_version(about_.stat, mount_);
    if (!version) GTEST_SKIP() << "packs hold no files of the temporary folder's file system";
    rules_.packs = std::make_shared<PackStore>();
    PackStore::Settings settings;
    settings.base = root_.path;
    settings.most_bytes = 1 << 30;
    settings.pack_bytes = 1 << 20;
    settings.least_free_percent = 0;
    std::string reason;
    ASSERT_TRUE(rules_.packs->open(settings, &reason)) << reason;
    ASSERT_TRUE(rules_.packs->add({path_, 0, kSize}, *version, test::memory(bytes_).get()));
    rules_.packs->flush();
    ASSERT_TRUE(rules_.packs->find({path_, 0, kSize}, *version));
  }

  void log() {
    std::string reason;
    const std::shared_ptr<LogFiles> files = LogFiles::open(root_.path, &reason);
    ASSERT_NE(files, nullptr) << reason;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(bytes_));
    ASSERT_EQ(files->write(0, 0, bytes), 0);
    auto logged = std::make_shared<LoggedCopy>();
    logged->read = std::make_shared<LogRead>(files, 0, std::vector<policy::LogRange>{{0, kSize}});
    logged->place = {0, kSize};
    logged->entry = {.checksum = LogFiles::checksum(bytes), .version = version_in_run(about_.stat)};
    rules_.logged = std::move(logged);
  }

  CopyResult copy() { return copy_in(path_, root_.fd.get(), 1, rules_); }
  std::vector<char> copied() const { return test::read_file(root_.path / copy_name(1).data()); }

  test::TemporaryFolder root_;
  std::string path_;
  std::vector<char> bytes_;
  CopyRules rules_;
  StageMount mount_;
  CopyResult about_;
};

TEST_F(StageCopyTest, ComesFromTheLogFirst) {
  pack();
  if (IsSkipped()) return;
  log();
  const CopyResult result = copy();
  EXPECT_TRUE(result.good && result.logged && !result.packed) << result.why;
  EXPECT_EQ(copied(), bytes_);
}

// What the log had written was followed by what the pack has.
TEST_F(StageCopyTest, WhatTheLogCouldNotCompleteComesWholeFromThePack) {
  pack();
  if (IsSkipped()) return;
  log();
  fail_one_write(kSize / 4);
  const CopyResult result = copy();
  EXPECT_TRUE(result.good && result.packed && !result.logged) << result.why;
  EXPECT_TRUE(copied() == bytes_) << copied().size() << " bytes";
}

TEST_F(StageCopyTest, WhatThePackCouldNotCompleteComesWholeFromTheOriginal) {
  pack();
  if (IsSkipped()) return;
  fail_one_write(kSize / 4);
  const CopyResult result = copy();
  EXPECT_TRUE(result.good && !result.packed && !result.logged) << result.why;
  EXPECT_TRUE(copied() == bytes_) << copied().size() << " bytes";
}

}  // namespace
}  // namespace sluice::optimizer
