// Jobs inside an optimizer process: many, dying, hostile, and with every option.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "optimizer/io/clock.h"
#include "tests/process/optimizer_client.h"

namespace sluice::test {
namespace {

using nlohmann::json;
using protocol::EventKind;
using protocol::SessionMetric;

constexpr uint64_t kMiB = 1 << 20;

json report(const OptimizerProcess& process) {
  return json::parse(status(process.socket()), nullptr, false);
}

size_t descriptors_of(const OptimizerProcess& process, const std::string& path) {
  size_t count = 0;
  const std::string folder = "/proc/" + std::to_string(process.pid()) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::error_code ignored;
    count += std::filesystem::read_symlink(entry.path(), ignored) == path ? 1 : 0;
  }
  return count;
}

struct Job {
  explicit Job(const OptimizerProcess& process, const std::string& options = "") {
    ready = client.hello(process.socket(), options) && client.claim();
  }
  Client client;
  bool ready = false;
};

TEST(Jobs, TwoShareAFileAndItIsClosedAfterTheSecond) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 16 * kMiB);
  OptimizerProcess process;
  Job one(process), two(process);
  ASSERT_TRUE(one.ready && two.ready);
  const auto first = one.client.file(path), second = two.client.file(path);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->file, second->file);
  EXPECT_TRUE(eventually([&] { return descriptors_of(process, path) == 1; }));
  ASSERT_TRUE(one.client.bye());
  EXPECT_EQ(descriptors_of(process, path), 1u);
  two.client.trip(second->file, 0, 8 * kMiB);
  EXPECT_TRUE(eventually([&] { return fetched(path, 0, 8 * kMiB) == 8 * kMiB; }));
  ASSERT_TRUE(two.client.bye());
  EXPECT_EQ(descriptors_of(process, path), 0u);
}

TEST(Jobs, ThePassedDescriptorIsClosed) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 2 * kMiB);
  OptimizerProcess process;
  Job job(process);
  ASSERT_TRUE(job.ready);
  {
    // file() opens, passes and closes. If the optimizer held what it got, the lock would stay.
    const UniqueFd locked(open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(flock(locked.get(), LOCK_EX), 0);
    ASSERT_TRUE(job.client.file_through(locked.get(), path));
  }
  const UniqueFd other(open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(eventually([&] { return flock(other.get(), LOCK_EX | LOCK_NB) == 0; }));
}

TEST(Jobs, AKilledJobIsForgottenAndItsFilesAreClosed) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 64 * kMiB);
  OptimizerProcess process;
  const pid_t child = fork();
  if (child == 0) {
    Job job(process);
    const auto known = job.client.file(path);
    if (!known) _exit(1);
    for (uint64_t at = 0;; at = (at + kMiB) % (64 * kMiB)) job.client.read(known->file, at, kMiB);
  }
  EXPECT_TRUE(eventually([&] { return descriptors_of(process, path) == 1; }));
  EXPECT_EQ(report(process)["jobs"].size(), 1u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return report(process)["jobs"].empty(); }, 5));
  EXPECT_TRUE(eventually([&] { return descriptors_of(process, path) == 0; }, 5));
}

TEST(Jobs, AJobThatEndsBeforeItTakesASlotIsForgotten) {
  OptimizerProcess process;
  const pid_t child = fork();
  if (child == 0) {
    Client client;
    _exit(client.hello(process.socket()) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(eventually([&] { return report(process)["jobs"].empty(); }, 5));
}

TEST(Jobs, ChildrenComeAndGoAndTheirCountersStay) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 64 * kMiB);
  OptimizerProcess process;
  Job job(process);
  ASSERT_TRUE(job.ready);
  const auto known = job.client.file(path);
  ASSERT_TRUE(known);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      if (!job.client.claim()) _exit(1);
      protocol::count(*job.client.slot(), protocol::ClientMetric::checkpoints_hit, 3);
      job.client.read(known->file, static_cast<uint64_t>(i) * kMiB, kMiB);
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(eventually([&] {
    const json metrics = report(process)["jobs"][0]["metrics"];
    return metrics["checkpoints_hit"] == 60 && metrics["events_seen"] == 20;
  }));
  // All but this process's own slot are free again.
  EXPECT_TRUE(eventually([&] {
    return std::count_if(std::begin(job.client.shared()->slots),
                         std::end(job.client.shared()->slots),
                         [](const protocol::Slot& slot) { return slot.pid != 0; }) == 1;
  }));
  EXPECT_EQ(report(process)["jobs"].size(), 1u);
}

TEST(Jobs, EverySlotCanBeTaken) {
  OptimizerProcess process;
  Job job(process);
  ASSERT_TRUE(job.ready);
  for (uint32_t i = 1; i < protocol::kSlots; ++i) ASSERT_TRUE(job.client.claim()) << i;
  EXPECT_FALSE(job.client.claim());
  EXPECT_TRUE(eventually(
      [&] { return report(process)["jobs"][0]["processes"].size() == protocol::kSlots; }));
}

TEST(Jobs, ASessionFollowsSixtyFourFilesAndNoMore) {
  const TempFolder data;
  OptimizerProcess process;
  Job job(process);
  ASSERT_TRUE(job.ready);
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(job.client.file(data.cold_file(std::to_string(i), 4096))) << i;
  }
  EXPECT_FALSE(job.client.file(data.cold_file("one too many", 4096)));
  EXPECT_NE(job.client.refusal().find("64"), std::string::npos);
  EXPECT_TRUE(job.client.file(data.path() + "/7"));  // known already
}

TEST(Jobs, WhatIsNoRegularFileOrNotTheOneNamedIsNotRead) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 16 * kMiB);
  OptimizerProcess process;
  Job job(process);
  ASSERT_TRUE(job.ready);
  const UniqueFd folder(open(data.path().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(job.client.file_through(folder.get(), "folder"));
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(job.client.file_through(null.get(), "device"));
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(job.client.file_through(file.get(), "another", 1));
  EXPECT_TRUE(eventually([&] {
    const json files = report(process)["files"];
    return files.size() == 3 && std::all_of(files.begin(), files.end(), [](const json& entry) {
             return entry["state"] == "off";
           });
  }));
  EXPECT_EQ(descriptors_of(process, path), 0u);
}

TEST(Jobs, WrongTokensAndSessionsAreRefused) {
  OptimizerProcess process;
  Job job(process);
  ASSERT_TRUE(job.ready);
  const Connection connection(process.socket());
  const protocol::Bye bye{job.client.welcome().session, job.client.welcome().token + 1};
  ASSERT_TRUE(connection.send(protocol::MessageKind::kBye, bytes_of(bye)));
  const auto reply = connection.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.kind, protocol::MessageKind::kRefused);
  EXPECT_EQ(report(process)["jobs"].size(), 1u);
}

TEST(Jobs, EventsThatMakeNoSenseAreCountedAndHarmless) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 16 * kMiB);
  OptimizerProcess process;
  Job job(process);
  ASSERT_TRUE(job.ready);
  const auto known = job.client.file(path);
  ASSERT_TRUE(known);
  job.client.read(known->file + 7, 0, kMiB);       // not a file of ours
  job.client.read(known->file, 0, 0);              // nothing
  job.client.read(known->file, UINT64_MAX, 4096);  // nowhere
  job.client.read(known->file, 4096, UINT64_MAX);  // everything
  job.client.push({0, 1, 0, 0, known->file, 1, static_cast<EventKind>(77), 0});
  job.client.push({0, kMiB, 0, 0x1001, known->file, 1, EventKind::kMapped, 1});
  job.client.read(known->file, 0, kMiB);
  EXPECT_TRUE(eventually([&] { return job.client.metric(SessionMetric::events_seen) == 7; }));
  EXPECT_EQ(job.client.metric(SessionMetric::events_bad), 6u);
}

TEST(Jobs, AFixedSizeIsReadOnTheFirstTripAndNoMore) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 64 * kMiB);
  OptimizerProcess process;
  Job job(process, "size=12M\ndistance=4M\n");
  ASSERT_TRUE(job.ready);
  const auto known = job.client.file(path);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->distance, 4 * kMiB);
  job.client.trip(known->file, 0, 4 * kMiB);
  EXPECT_TRUE(
      eventually([&] { return job.client.metric(SessionMetric::precached_bytes) == 12 * kMiB; }));
  job.client.trip(known->file, 4 * kMiB, 4 * kMiB);  // 33 %: nothing
  job.client.trip(known->file, 8 * kMiB, 4 * kMiB);  // 67 % is past what 4 MiB steps allow
  EXPECT_TRUE(
      eventually([&] { return job.client.metric(SessionMetric::precached_bytes) == 24 * kMiB; }));
  EXPECT_EQ(cached(path, 24 * kMiB, 64 * kMiB), 0u);
}

TEST(Jobs, PrefetchOffReadsNothing) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 16 * kMiB);
  OptimizerProcess process;
  Job job(process, "prefetch=off\n");
  ASSERT_TRUE(job.ready);
  const auto known = job.client.file(path);
  ASSERT_TRUE(known);
  job.client.trip(known->file, 0, 8 * kMiB);
  job.client.trip(known->file, 8 * kMiB, 8 * kMiB);
  EXPECT_TRUE(eventually([&] { return job.client.metric(SessionMetric::events_seen) == 2; }));
  EXPECT_EQ(job.client.metric(SessionMetric::precached_bytes), 0u);
  EXPECT_LT(cached(path, 0, 16 * kMiB), kMiB);
}

TEST(Jobs, FilesAboveTheBudgetSayThatTheyAreDroppedBehind) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 64 * kMiB);
  OptimizerProcess process({"--memory", "16M"});
  Job job(process);
  ASSERT_TRUE(job.ready);
  const auto known = job.client.file(path, 0);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->flags, protocol::kFileDropBehind);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);  // the kernel reads nothing ahead of us
  std::vector<char> buffer(kMiB);
  for (uint64_t at = 0; at < 64 * kMiB; at += kMiB) {
    ASSERT_EQ(pread(fd.get(), buffer.data(), kMiB, static_cast<off_t>(at)),
              static_cast<ssize_t>(kMiB));
    job.client.read(known->file, at, kMiB);
    // As fast as the optimizer follows, so that it, and not the kernel's read-ahead, brings them.
    ASSERT_TRUE(eventually(
        [&] { return job.client.slot()->head.load() == job.client.slot()->tail.load(); }));
    status(process.socket());  // answered after what the event led to
  }
  EXPECT_TRUE(
      eventually([&] { return job.client.metric(SessionMetric::dropped_bytes) > 8 * kMiB; }));
}

class Fallbacks : public testing::TestWithParam<const char*> {};

TEST_P(Fallbacks, ReadAheadAllTheSame) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 64 * kMiB);
  OptimizerProcess process({"--force-fallback", GetParam()});
  Job job(process);
  ASSERT_TRUE(job.ready);
  const auto known = job.client.file(path);
  ASSERT_TRUE(known);
  job.client.trip(known->file, 0, 8 * kMiB);
  EXPECT_TRUE(eventually([&] { return fetched(path, 0, 8 * kMiB) == 8 * kMiB; }));
  job.client.trip(known->file, 8 * kMiB, 8 * kMiB);
  EXPECT_TRUE(eventually([&] { return fetched(path, 0, 24 * kMiB) == 24 * kMiB; }));
  const json state = report(process);
  const std::string forced = GetParam();
  if (forced.find("nouring") != std::string::npos) {
    EXPECT_EQ(state["engine"], "threads");
  }
  if (forced.find("nocachestat") != std::string::npos) {
    EXPECT_EQ(state["features"]["cachestat"], false);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fallbacks,
                         testing::Values("nouring", "nocachestat", "nouring,nocachestat"),
                         [](const auto& info) { return "N" + std::to_string(info.index); });

class Observed : public testing::TestWithParam<const char*> {};

TEST_P(Observed, AMappingIsFollowedByItsPageTable) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 64 * kMiB);
  OptimizerProcess process({"--force-fallback", GetParam()});
  Job job(process);
  ASSERT_TRUE(job.ready);
  const auto known = job.client.file(path);
  ASSERT_TRUE(known);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto* map =
      static_cast<volatile char*>(mmap(nullptr, 64 * kMiB, PROT_READ, MAP_SHARED, fd.get(), 0));
  ASSERT_NE(map, MAP_FAILED);
  madvise(const_cast<char*>(map), 64 * kMiB, MADV_RANDOM);  // the kernel reads nothing ahead of us
  const auto address = reinterpret_cast<uint64_t>(map);
  job.client.push({0, 64 * kMiB, optimizer::now_ns(), address, known->file, 1, EventKind::kMapped,
                   protocol::kFlagObserve});
  uint64_t at = 0;
  // Far enough that a sidecar that gets little processor time sees some of it being read.
  EXPECT_TRUE(eventually([&] {
    for (int page = 0; page < 64 && at < 48 * kMiB; ++page, at += 4096) static_cast<void>(map[at]);
    return job.client.metric(SessionMetric::precached_bytes) >= 8 * kMiB;
  }));
  EXPECT_EQ(report(process)["streams"].size(), 1u);
  job.client.push({0, 0, 0, address, known->file, 1, EventKind::kUnmapped, 0});
  EXPECT_TRUE(eventually([&] { return report(process)["jobs"][0]["mappings"] == 0; }));
  munmap(const_cast<char*>(map), 64 * kMiB);
}

INSTANTIATE_TEST_SUITE_P(ScanAndReads, Observed, testing::Values("", "nopagemapscan"),
                         [](const auto& info) { return "N" + std::to_string(info.index); });

}  // namespace
}  // namespace sluice::test
