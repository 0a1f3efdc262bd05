// Both engines behind the seam: the same promises, on real files and on descriptors that misbehave.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "optimizer/io/engine.h"
#include "tests/process/optimizer_client.h"
#include "tests/process/stopped_server.h"

namespace sluice::optimizer {
namespace {

using test::TempFolder;

constexpr uint64_t kMiB = 1 << 20;

class Engines : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("io_uring")) {
      std::string reason;
      engine_ = make_uring_engine(&reason);
      if (engine_ == nullptr) GTEST_SKIP() << "no io_uring here: " << reason;
    } else {
      engine_ = make_pool_engine(8);
    }
    EXPECT_STREQ(engine_->name(), GetParam());
  }

  std::vector<ReadResult> wait(size_t count, int milliseconds = 10000) {
    std::vector<ReadResult> results;
    while (results.size() < count) {
      pollfd ready{engine_->event_fd(), POLLIN, 0};
      if (poll(&ready, 1, milliseconds) != 1) break;
      engine_->acknowledge();
      engine_->reap(&results);
    }
    return results;
  }

  TempFolder folder_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(Engines, BringBytesIntoThePageCache) {
  const std::string path = folder_.cold_file("data", 32 * kMiB);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  for (uint64_t i = 0; i < 32; ++i) {
    ASSERT_TRUE(engine_->submit({i + 1, fd.get(), i * kMiB, kMiB}));
  }
  engine_->flush();
  EXPECT_EQ(engine_->in_flight(), 32u);
  std::set<uint64_t> tokens;
  for (const ReadResult& result : wait(32)) {
    EXPECT_EQ(result.error, 0);
    EXPECT_EQ(result.bytes, kMiB);
    tokens.insert(result.token);
  }
  EXPECT_EQ(tokens.size(), 32u);
  EXPECT_EQ(engine_->in_flight(), 0u);
  EXPECT_EQ(test::fetched(path, 0, 32 * kMiB), 32 * kMiB);
}

TEST_P(Engines, EndAtTheEndOfTheFile) {
  const std::string path = folder_.cold_file("data", kMiB + 1234);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(engine_->submit({1, fd.get(), kMiB, kMiB}));
  ASSERT_TRUE(engine_->submit({2, fd.get(), 5 * kMiB, kMiB}));
  engine_->flush();
  for (const ReadResult& result : wait(2)) {
    EXPECT_EQ(result.error, 0);
    EXPECT_EQ(result.bytes, result.token == 1 ? 1234u : 0u);
  }
}

TEST_P(Engines, ReportErrors) {
  const UniqueFd folder(open(folder_.path().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(engine_->submit({1, folder.get(), 0, 4096}));
  ASSERT_TRUE(engine_->submit({2, -1, 0, 4096}));
  engine_->flush();
  const std::vector<ReadResult> results = wait(2);
  ASSERT_EQ(results.size(), 2u);
  for (const ReadResult& result : results)
    EXPECT_EQ(result.error, result.token == 1 ? EISDIR : EBADF);
}

// Only more than one submission's worth forces a second: 1 MiB is submitted at once.
TEST_P(Engines, ContinueWhatComesShort) {
  const std::string path = folder_.cold_file("data", 16 * kMiB);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(engine_->submit({1, fd.get(), 512, 8 * kMiB}));
  engine_->flush();
  const std::vector<ReadResult> results = wait(1);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].bytes, 8 * kMiB);
  EXPECT_GE(test::fetched(path, 0, 8 * kMiB), 8 * kMiB - 4096);
}

TEST_P(Engines, SayWhenTheyAreFullAndReadAllTheSame) {
  const std::string path = folder_.cold_file("data", kMiB);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  uint64_t accepted = 0;
  while (accepted < 10 * kEngineDepth && engine_->submit({accepted + 1, fd.get(), 0, 4096}))
    ++accepted;
  EXPECT_EQ(accepted, kEngineDepth);
  engine_->flush();
  EXPECT_EQ(wait(accepted).size(), accepted);
  EXPECT_TRUE(engine_->submit({9999, fd.get(), 0, 4096}));
  engine_->flush();
  EXPECT_EQ(wait(1).size(), 1u);
}

// A pipe without a writer stands for a mount that hangs.
TEST_P(Engines, ReadsThatHangDoNotHoldUpOthersAndCanBeCancelled) {
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  const UniqueFd reading(pipes[0]);
  UniqueFd writing(pipes[1]);
  const std::string path = folder_.cold_file("data", kMiB);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool uring = GetParam() == std::string("io_uring");
  if (uring) {  // preadv() refuses a pipe at once, so that threads cannot hang in one
    for (uint64_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(engine_->submit({100 + i, reading.get(), 0, 4096}));
    }
    engine_->flush();
  }
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(engine_->submit({i + 1, fd.get(), 0, 4096}));
  engine_->flush();
  EXPECT_EQ(wait(8).size(), 8u);
  EXPECT_EQ(engine_->in_flight(), uring ? 4u : 0u);
  for (uint64_t i = 0; uring && i < 4; ++i) engine_->cancel(100 + i);
  for (const ReadResult& result : wait(uring ? 4 : 0)) EXPECT_NE(result.error, 0);
  EXPECT_EQ(engine_->in_flight(), 0u);
}

TEST_P(Engines, WithoutBellsResultsStillComeByAsking) {
  const std::string path = folder_.cold_file("data", 16 * kMiB);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  engine_->notify(false);
  ASSERT_TRUE(engine_->submit({1, fd.get(), 0, kMiB}));
  engine_->flush();
  std::vector<ReadResult> results;
  ASSERT_TRUE(test::eventually([&] {
    engine_->reap(&results);
    return !results.empty();
  }));
  pollfd ready{engine_->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  // And what ended while they were off is rung for once they are on.
  ASSERT_TRUE(engine_->submit({2, fd.get(), 8 * kMiB, 4096}));
  engine_->flush();
  ASSERT_TRUE(
      test::eventually([&] { return test::fetched(path, 8 * kMiB, 8 * kMiB + 4096) == 4096; }));
  engine_->notify(true);
  EXPECT_EQ(wait(1, 2000).size(), 1u);
}

// A mount that hangs holds up nothing else: three of them took all threads of the pool, and two all
// workers of io_uring.
TEST(Engine, ReadsOthersBesideThreeMountsThatHang) {
  constexpr uint64_t kHung = 3 * kMostOfMount, kStep = test::StoppedServer::kBytes / 256;
  const TempFolder folder;
  const UniqueFd other(open(folder.cold_file("other", kMiB).c_str(), O_RDONLY | O_CLOEXEC));
  for (const bool no_uring : {false, true}) {
    const test::StoppedServer server;
    if (!server.mounted()) GTEST_SKIP() << "FUSE is needed";
    const UniqueFd hung(open(server.file().c_str(), O_RDONLY | O_CLOEXEC));
    posix_fadvise(hung.get(), 0, 0, POSIX_FADV_RANDOM);
    const auto engine = make_engine(no_uring);
    server.stop();
    for (uint64_t i = 0; i < kHung; ++i) {
      ASSERT_TRUE(engine->submit({i + 1, hung.get(), i * kStep, kStep}));
    }
    engine->flush();
    ASSERT_TRUE(engine->submit({kHung + 1, other.get(), 0, kMiB}));
    engine->flush();
    std::vector<ReadResult> results;
    EXPECT_TRUE(test::eventually([&] {
      engine->reap(&results);
      return !results.empty();
    })) << engine->name();
    server.resume();
    EXPECT_TRUE(test::eventually([&] {
      engine->reap(&results);
      return engine->in_flight() == 0;
    })) << engine->name();
    ASSERT_EQ(results.size(), kHung + 1);
    EXPECT_EQ(results.front().token, kHung + 1) << engine->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Engines, testing::Values("io_uring", "threads"),
                         [](const auto& info) { return std::string(info.param); });

TEST(MakeEngine, FallsBackToThreads) { EXPECT_STREQ(make_engine(true)->name(), "threads"); }

}  // namespace
}  // namespace sluice::optimizer
