// How much of a file is in the page cache, with cachestat(2) and without, and beside a server that
// does not answer.
#include "optimizer/io/residency.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

#include "protocol/unique_fd.h"
#include "tests/process/optimizer_client.h"
#include "tests/process/stopped_server.h"

namespace sluice::optimizer {
namespace {

using policy::Range;

constexpr uint64_t kMiB = 1 << 20;

uint64_t cached(const FileResidency& residency, Range range) {
  uint64_t bytes = 0;
  EXPECT_TRUE(residency.cached(range, &bytes));
  return bytes;
}

TEST(FileResidency, IsTheSameByEachWay) {
  const test::TempFolder folder;
  const std::string path = folder.cold_file("file", 4 * kMiB + 100);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  char page[4096];
  for (const bool without : {false, true}) {
    const FileResidency residency(fd.get(), 4 * kMiB + 100, without);
    EXPECT_TRUE(residency.known());
    EXPECT_TRUE(residency.exact());
    test::evict(path);
    EXPECT_EQ(cached(residency, {0, 4 * kMiB + 100}), 0U);
    ASSERT_TRUE(test::eventually([&] {
      return pread(fd.get(), page, sizeof page, kMiB) == ssize_t{sizeof page} &&
             cached(residency, {kMiB, kMiB + 4096}) == 4096;
    }));
    EXPECT_EQ(cached(residency, {2 * kMiB, 4 * kMiB}), 0U);
    ASSERT_TRUE(test::eventually([&] {
      return pread(fd.get(), page, 100, 4 * kMiB) == 100 &&
             cached(residency, {4 * kMiB, 4 * kMiB + 100}) == 100;
    }));
    uint64_t bytes = 1;
    EXPECT_TRUE(residency.exactly({8 * kMiB, 9 * kMiB}, &bytes)) << "beyond the file's end";
    EXPECT_EQ(bytes, 0U);
  }
}

TEST(FileResidency, OfNoFileIsNotKnown) {
  uint64_t bytes = 1;
  EXPECT_FALSE(FileResidency().known());
  EXPECT_FALSE(FileResidency().cached({0, 1}, &bytes));
}

// Without cachestat (before Linux 6.5) the thread that all jobs share asked the file's server, by
// fstat() and mmap(), before each question, and waited for one that hung.
TEST(FileResidency, NeverWaitsForTheServer) {
  const test::StoppedServer server;
  if (!server.mounted()) GTEST_SKIP() << "FUSE is needed";
  const UniqueFd fd(open(server.file().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd);
  const FileResidency asked(fd.get(), kMiB, false), mapped(fd.get(), kMiB, true);
  ASSERT_TRUE(mapped.exact());
  char page[4096];
  ASSERT_EQ(pread(fd.get(), page, sizeof page, 0), ssize_t{sizeof page});
  server.stop();
  const auto answer = std::async(std::launch::async, [&] {
    (void)cached(asked, {0, kMiB});
    (void)cached(mapped, {0, kMiB});
  });
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  server.resume();
}

}  // namespace
}  // namespace sluice::optimizer
