// A real optimizer process and a client that plays the library: sessions, files, reading ahead.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/process/optimizer_client.h"

namespace sluice::test {
namespace {

using nlohmann::json;
using protocol::SessionMetric;

constexpr uint64_t kMiB = 1 << 20;

TEST(OptimizerSession, ReadsAheadOfATripAndCountsWhatWasUsed) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 64 * kMiB);
  ASSERT_LT(cached(path, 0, 64 * kMiB), kMiB);
  OptimizerProcess process;
  Client client;
  ASSERT_TRUE(client.hello(process.socket()));
  ASSERT_TRUE(client.claim());
  const auto known = client.file(path);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->flags, 0u);
  EXPECT_GE(known->distance, 256u << 10);
  ASSERT_TRUE(client.trip(known->file, 0, 8 * kMiB));
  // The whole cell is followed by a little more, but not by the rest of the file.
  EXPECT_TRUE(eventually([&] { return fetched(path, 0, 8 * kMiB) == 8 * kMiB; }));
  EXPECT_TRUE(
      eventually([&] { return client.metric(SessionMetric::precached_bytes) >= 8 * kMiB; }));
  EXPECT_LT(cached(path, 0, 64 * kMiB), 24 * kMiB);
  ASSERT_TRUE(client.trip(known->file, 8 * kMiB, 8 * kMiB));
  EXPECT_TRUE(eventually([&] { return fetched(path, 0, 32 * kMiB) == 32 * kMiB; }));
  EXPECT_TRUE(
      eventually([&] { return client.metric(SessionMetric::precached_bytes) >= 32 * kMiB; }));
  EXPECT_TRUE(
      eventually([&] { return client.metric(SessionMetric::precached_used_bytes) == 8 * kMiB; }));
  EXPECT_EQ(client.metric(SessionMetric::events_seen), 2u);
  EXPECT_EQ(client.metric(SessionMetric::events_bad), 0u);
  EXPECT_EQ(client.metric(SessionMetric::streams_begun), 1u);
}

TEST(OptimizerSession, ByeClosesEveryDescriptorBeforeItIsAnswered) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 16 * kMiB);
  OptimizerProcess process;
  Client client;
  ASSERT_TRUE(client.hello(process.socket()));
  ASSERT_TRUE(client.claim());
  const auto known = client.file(path);
  ASSERT_TRUE(known);
  ASSERT_TRUE(client.trip(known->file, 0, 8 * kMiB));
  ASSERT_TRUE(eventually([&] { return fetched(path, 0, 8 * kMiB) == 8 * kMiB; }));
  ASSERT_TRUE(client.bye());
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process.pid()) + "/fd")) {
    std::error_code ignored;
    EXPECT_NE(std::filesystem::read_symlink(entry.path(), ignored), path);
  }
  EXPECT_EQ(client.shared()->header.closed.load(), 1u);
}

TEST(OptimizerSession, StatusIsJsonWithJobsFilesStreamsAndMetrics) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 16 * kMiB);
  OptimizerProcess process;
  Client client;
  ASSERT_TRUE(client.hello(process.socket()));
  ASSERT_TRUE(client.claim());
  const auto known = client.file(path);
  ASSERT_TRUE(known);
  ASSERT_TRUE(client.trip(known->file, 0, 8 * kMiB));
  ASSERT_TRUE(eventually([&] { return client.metric(SessionMetric::precached_bytes) > 0; }));
  const json root = json::parse(status(process.socket()));
  ASSERT_EQ(root["jobs"].size(), 1u);
  EXPECT_EQ(root["jobs"][0]["pid"], getpid());
  EXPECT_EQ(root["jobs"][0]["metrics"]["events_seen"], 1u);
  EXPECT_TRUE(root["jobs"][0]["metrics"].contains("checkpoints_hit"));
  ASSERT_EQ(root["files"].size(), 1u);
  EXPECT_EQ(root["files"][0]["path"], path);
  EXPECT_EQ(root["streams"].size(), 1u);
  EXPECT_EQ(root["mounts"].size(), 1u);
}

}  // namespace
}  // namespace sluice::test
