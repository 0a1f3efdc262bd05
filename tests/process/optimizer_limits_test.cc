// Whatever one job needs of memory and descriptors, or sees of the machine: it is that job that
// does without, and no other.
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/process/samples_client.h"

namespace sluice::test {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// With a sanitizer the optimizer has its shadow memory, too, and ends where std::bad_alloc would be
// thrown.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// "VmHWM", bytes.
uint64_t process_memory(pid_t pid, const std::string& field) {
  std::ifstream lines("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stoull(line.substr(field.size() + 1)) << 10;
  }
  return 0;
}

uint64_t descriptors_of(pid_t pid) {
  uint64_t count = 0;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

void set_limit(pid_t pid, __rlimit_resource what, uint64_t soft) {
  rlimit limit{};
  ASSERT_EQ(prlimit(pid, what, nullptr, &limit), 0);
  limit.rlim_cur = std::min<uint64_t>(soft, limit.rlim_max);
  ASSERT_EQ(prlimit(pid, what, &limit, nullptr), 0);
}

class Limits : public testing::Test {
 protected:
  const TempFolder folder_;
  OptimizerProcess process_;
};

TEST_F(Limits, SamplesOfHugeNumbersTakeNoMoreThanOthers) {
  if (kSanitized) GTEST_SKIP() << "its memory is mostly the sanitizer's";
  Job job(process_);
  const uint32_t file = job.follow(folder_.cold_file("data", 1000 * 4096));
  const uint32_t set = job.dataset(protocol::kMaxSamples);
  ASSERT_NE(file, 0U);
  ASSERT_NE(set, 0U);
  constexpr uint64_t kIndices[] = {0, uint64_t{100'000'000}, protocol::kMaxSamples - 1,
                                   protocol::kMaxSamples,
                                   (uint64_t{1} << protocol::kSampleIndexBits) - 1};
  uint64_t pushed = 0;
  for (const uint64_t index : kIndices) {
    job.event(EventKind::kSampleBegin, set, index);
    job.part(set, index, file, 4096 * pushed++, 4096);
    job.event(EventKind::kSampleEnd, set, index);
  }
  EXPECT_TRUE(job.knows(3));
  EXPECT_TRUE(job.order(set, 1, {0, 100'000'000, UINT32_MAX}));
  EXPECT_TRUE(job.locate(set, file, {{0, 100, 0}}, protocol::kMaxSamples - 2));
  EXPECT_FALSE(job.locate(set, file, {{0, 100, 0}}, protocol::kMaxSamples));
  EXPECT_TRUE(job.knows(4));
  EXPECT_LT(process_memory(process_.pid(), "VmHWM"), 100 * kMiB);
  expect_another_job_is_served(process_, folder_);
}

TEST_F(Limits, OrdersWithoutEndAreRefusedBeforeTheyFillMemory) {
  if (kSanitized) GTEST_SKIP() << "its memory is mostly the sanitizer's";
  Job job(process_);
  const std::vector<uint32_t> long_order(8 << 20, 5);
  const UniqueFd fd = memory_of(long_order);
  unsigned taken = 0;
  for (uint32_t i = 0; i < 10; ++i) {
    const uint32_t set = job.dataset(1000, "set " + std::to_string(i));
    ASSERT_NE(set, 0U);
    const protocol::Samples message = job.message_about(set, 1, long_order.size());
    taken += job.order(message, fd.get()) ? 1 : 0;
  }
  EXPECT_GT(taken, 0U);
  EXPECT_LT(process_memory(process_.pid(), "VmHWM"), 900 * kMiB);
  expect_another_job_is_served(process_, folder_);
}

// What the message claims is not believed before it is looked at.
TEST_F(Limits, NoMemoryIsTakenForWhatAMessageOnlyClaims) {
  Job job(process_);
  const uint32_t set = job.dataset(1000);
  const UniqueFd empty(memfd_create("empty", MFD_CLOEXEC));
  const uint64_t before = process_memory(process_.pid(), "VmHWM");
  protocol::Samples message = job.message_about(set, 1, 1 << 25);
  EXPECT_FALSE(job.order(message, empty.get()));
  message.bytes = 32 << 20;
  message.count = 1 << 20;
  message.each = 1;
  const auto reply = job.ask(MessageKind::kLocate, bytes_of(message), empty.get());
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.kind, MessageKind::kRefused);
  EXPECT_LT(process_memory(process_.pid(), "VmHWM") - before, 16 * kMiB);
}

TEST_F(Limits, WithoutMemoryOnlyTheSessionThatNeedsItEnds) {
  if (kSanitized) GTEST_SKIP() << "it would end for want of memory";
  Job honest(process_), greedy(process_);
  const uint32_t other = honest.dataset(64, "other");
  ASSERT_NE(other, 0U);
  // Room for sessions to come, and their threads, but for no long order.
  set_limit(process_.pid(), RLIMIT_AS, process_memory(process_.pid(), "VmSize") + 110 * kMiB);
  const std::vector<uint32_t> long_order(1 << 25, 5);
  const UniqueFd fd = memory_of(long_order);
  const uint32_t set = greedy.dataset(1000, "greedy");
  ASSERT_NE(set, 0U);
  EXPECT_FALSE(greedy.order(greedy.message_about(set, 1, long_order.size()), fd.get()));
  EXPECT_FALSE(process_.ended());
  EXPECT_TRUE(eventually([&] { return greedy.shared()->header.closed.load() != 0; }, 30));
  EXPECT_EQ(honest.shared()->header.closed.load(), 0U);
  EXPECT_TRUE(honest.order(other, 1, {3, 1, 2}));
  expect_another_job_is_served(process_, folder_);
}

TEST_F(Limits, AProcessIsNotTakenForDeadForWantOfDescriptors) {
  Client client;
  ASSERT_TRUE(client.hello(process_.socket()));
  // The hello's own connection is closed by now, or will be.
  ASSERT_TRUE(eventually([&] { return !status(process_.socket()).empty(); }, 30));
  const uint64_t used = descriptors_of(process_.pid());
  set_limit(process_.pid(), RLIMIT_NOFILE, 3);
  ASSERT_TRUE(client.claim());
  protocol::EventData event;
  event.kind = EventKind::kRead;  // of no file that it follows
  event.file = 999;
  event.length = 1;
  ASSERT_TRUE(client.push(event));
  ASSERT_TRUE(eventually([&] { return client.metric(SessionMetric::events_bad) == 1; }, 30));
  // A tick or more later, counted by what is published with each.
  ASSERT_TRUE(client.push(event));
  ASSERT_TRUE(eventually([&] { return client.metric(SessionMetric::events_bad) == 2; }, 30));
  EXPECT_EQ(client.slot()->pid.load(), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(client.shared()->header.closed.load(), 0U);
  set_limit(process_.pid(), RLIMIT_NOFILE, used + 1000);
  const std::string pids = "\"processes\":[" + std::to_string(getpid()) + "]";
  EXPECT_TRUE(
      eventually([&] { return status(process_.socket()).find(pids) != std::string::npos; }, 30));
  EXPECT_EQ(client.slot()->pid.load(), static_cast<uint32_t>(getpid()));
  EXPECT_TRUE(client.bye());
}

// A connection that cannot be accepted made the loop go round and round.
TEST_F(Limits, WithoutDescriptorsTheOptimizerSleepsAllTheSame) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer needs descriptors to look at memory";
  ASSERT_FALSE(status(process_.socket()).empty());
  const auto ticks = [&] {
    std::ifstream file("/proc/" + std::to_string(process_.pid()) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream rest(text.substr(text.rfind(')') + 2));
    std::string word;
    uint64_t sum = 0;
    for (int field = 0; rest >> word; ++field) sum += field == 11 || field == 12 ? stoull(word) : 0;
    return sum;
  };
  set_limit(process_.pid(), RLIMIT_NOFILE, 3);
  const uint64_t before = ticks();
  std::vector<std::unique_ptr<Connection>> waiting;
  constexpr int kWaiting = 20;
  waiting.reserve(kWaiting);
  for (int i = 0; i < kWaiting; ++i) {
    waiting.push_back(std::make_unique<Connection>(process_.socket()));
  }
  for (const auto& one : waiting) one->send(MessageKind::kStatus, "");
  EXPECT_FALSE(waiting.back()->receive(3));
  EXPECT_LT(ticks() - before, static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
  set_limit(process_.pid(), RLIMIT_NOFILE, 1000);
  expect_another_job_is_served(process_, folder_);
}

TEST_F(Limits, OneProcessDoesNotTakeAllSessions) {
  std::vector<std::unique_ptr<Client>> clients;
  unsigned taken = 0;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<Client>());
    taken += clients.back()->hello(process_.socket()) ? 1 : 0;
  }
  EXPECT_EQ(taken, 64U);
  const pid_t child = fork();
  if (child == 0) {
    Client other;
    _exit(other.hello(process_.socket()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Clients that end at any moment, in the middle of a message too, with whatever they passed.
TEST_F(Limits, ClientsThatAreKilledWhileTheyAskTakeNothingWithThem) {
  const std::string path = folder_.cold_file("data", 64 * kBytes);
  for (int round = 0; round < 40; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);
      for (int i = 0; i < 3; ++i) fork();  // a storm of eight, of one session each
      Job job(process_);
      const uint32_t file = job.follow(path);
      const uint32_t set = job.dataset(1000, "killed");
      EXPECT_EQ(write(ready[1], "x", 1), 1);
      for (uint32_t i = 0;; ++i) {
        job.read_sample(set, i % 1000, file);
        job.order(set, i, {1, 2, 3, i % 1000});
        const Connection half(process_.socket());
        half.send_bytes(std::string(i % 40, 'x'), i % 3 == 0 ? 0 : -1);
      }
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    kill(-child, SIGKILL);
    close(ready[0]);
    waitpid(child, nullptr, 0);
  }
  EXPECT_FALSE(process_.ended());
  expect_another_job_is_served(process_, folder_);
}

// In a child with another root, connected before: true if the optimizer took its paths.
bool confined_child_names_paths(const OptimizerProcess& process, const Job& job, uint32_t set,
                                const std::string& root) {
  const pid_t child = fork();
  if (child == 0) {
    const Connection connection(process.socket());
    if (!root.empty() && chroot(root.c_str()) != 0) _exit(2);
    const std::string path = "/etc/passwd";
    const UniqueFd fd(memfd_create("paths", MFD_CLOEXEC));
    protocol::Samples message = job.message_about(set, 0, 1);
    message.bytes = path.size() + 1;
    message.each = 1;
    if (write(fd.get(), path.c_str(), message.bytes) != static_cast<ssize_t>(message.bytes))
      _exit(3);
    connection.send(MessageKind::kLocate, bytes_of(message), fd.get());
    const auto reply = connection.receive(20);
    _exit(reply && reply->header.kind == MessageKind::kDone ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
  return WEXITSTATUS(status) == 1;
}

TEST_F(Limits, AProcessWithAnotherRootNamesNoPaths) {
  if (geteuid() != 0) GTEST_SKIP() << "chroot is for root";
  Job job(process_);
  const uint32_t set = job.dataset(10);
  ASSERT_NE(set, 0U);
  EXPECT_TRUE(confined_child_names_paths(process_, job, set, ""));
  EXPECT_FALSE(confined_child_names_paths(process_, job, set, folder_.path()));
  EXPECT_TRUE(job.locate_files(set, {"/etc/hostname"}));
}

}  // namespace
}  // namespace sluice::test
