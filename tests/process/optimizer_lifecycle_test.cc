// How the optimizer starts, ends, and holds its place: locks, sockets, folders, signals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>

#include "tests/process/optimizer_client.h"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;
using protocol::MessageKind;

constexpr uint64_t kMiB = 1 << 20;

// Runs `work` in a child that ends with _exit(its result).
pid_t in_child(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work());
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::optional<Reply> ask(const std::string& socket, MessageKind kind, const std::string& body = "",
                         uint32_t version = protocol::kVersion) {
  const Connection connection(socket);
  if (!connection.good() || !connection.send(kind, body, -1, version)) return std::nullopt;
  return connection.receive();
}

TEST(Lifecycle, ASecondOneOnTheSameSocketLeavesAtOnceAndQuietly) {
  OptimizerProcess first;
  ASSERT_NE(status(first.socket()), "");
  OptimizerProcess second({"--socket", first.socket()});
  EXPECT_EQ(second.wait_end(5), 0);
  EXPECT_NE(status(first.socket()), "");
}

TEST(Lifecycle, LingerOverItLeavesNothingBehind) {
  OptimizerProcess process({"--linger", "5"});
  EXPECT_FALSE(process.ended());
  EXPECT_EQ(process.wait_end(20), 0);
  EXPECT_FALSE(fs::exists(process.folder()));
}

TEST(Lifecycle, ItOutlivesItsLastJobByTheLingerTimeOfThatJob) {
  OptimizerProcess process({"--linger", "600"});
  Client client;
  ASSERT_TRUE(client.hello(process.socket(), "linger=1\n"));
  ASSERT_TRUE(client.claim());
  EXPECT_FALSE(process.wait_end(2));  // a job is here
  ASSERT_TRUE(client.bye());
  EXPECT_EQ(process.wait_end(10), 0);
  EXPECT_FALSE(fs::exists(process.folder()));
}

TEST(Lifecycle, StopIsAnsweredOnceNoJobCanReachItAnyMore) {
  OptimizerProcess process;
  const auto reply = ask(process.socket(), MessageKind::kStop);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.kind, MessageKind::kGone);
  EXPECT_FALSE(Connection(process.socket()).good());
  EXPECT_EQ(process.wait_end(5), 0);
  EXPECT_FALSE(fs::exists(process.folder()));
}

TEST(Lifecycle, SigtermEndsItOrderlyWithJobsInside) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 64 * kMiB);
  OptimizerProcess process;
  Client client;
  ASSERT_TRUE(client.hello(process.socket()));
  ASSERT_TRUE(client.claim());
  const auto known = client.file(path);
  ASSERT_TRUE(known);
  client.trip(known->file, 0, 8 * kMiB);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_end(5), 0);
  EXPECT_EQ(client.shared()->header.closed.load(), 1u);
  EXPECT_FALSE(fs::exists(process.folder()));
  EXPECT_TRUE(client.trip(known->file, 8 * kMiB, 8 * kMiB));  // the job does not notice
}

TEST(Lifecycle, AfterSigkillAnotherTakesThePlace) {
  const TempFolder parent;
  const std::string socket = parent.path() + "/seat/v.sock";
  {
    OptimizerProcess first({"--socket", socket});
    ASSERT_TRUE(eventually([&] { return status(socket) != ""; }));
    first.signal(SIGKILL);
    EXPECT_EQ(first.wait_end(5), 128 + SIGKILL);
  }
  EXPECT_TRUE(fs::exists(socket));
  OptimizerProcess second({"--socket", socket});
  EXPECT_TRUE(eventually([&] { return status(socket) != ""; }));
}

TEST(Lifecycle, WithItsFolderGoneItHelpsItsJobsAndThenEnds) {
  const TempFolder data;
  const std::string path = data.cold_file("data", 16 * kMiB);
  OptimizerProcess process;
  Client client;
  ASSERT_TRUE(client.hello(process.socket()));
  ASSERT_TRUE(client.claim());
  const auto known = client.file(path);
  ASSERT_TRUE(known);
  fs::remove_all(process.folder());
  client.trip(known->file, 0, 8 * kMiB);
  EXPECT_TRUE(eventually([&] { return fetched(path, 0, 8 * kMiB) == 8 * kMiB; }));
  EXPECT_FALSE(process.ended());
  for (protocol::Slot& slot : client.shared()->slots) slot.pid = 0;  // the job is over
  const pid_t child = in_child([&] { return client.claim() ? 0 : 1; });
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(process.wait_end(10), 0);
}

TEST(Lifecycle, FoldersOfAnotherUsersMakingAreRefused) {
  const TempFolder parent;
  const auto refused = [&](const std::string& folder) {
    OptimizerProcess process({"--socket", folder + "/v.sock"});
    return process.wait_end(5) == 1;
  };
  fs::create_directory(parent.path() + "/open");
  chmod((parent.path() + "/open").c_str(), 0755);
  EXPECT_TRUE(refused(parent.path() + "/open"));
  fs::create_directory(parent.path() + "/real");
  chmod((parent.path() + "/real").c_str(), 0700);
  fs::create_directory_symlink(parent.path() + "/real", parent.path() + "/link");
  EXPECT_TRUE(refused(parent.path() + "/link"));
  EXPECT_TRUE(refused(parent.path() + "/missing/deep"));
  if (geteuid() == 0) {
    EXPECT_EQ(chown((parent.path() + "/real").c_str(), 65534, 65534), 0);
    EXPECT_TRUE(refused(parent.path() + "/real"));
  }
  OptimizerProcess relative({"--socket", "v.sock"});
  EXPECT_EQ(relative.wait_end(5), 1);
}

TEST(Lifecycle, BadArgumentsGetALineAndStatusTwo) {
  OptimizerProcess process({"--linger", "soon"});
  EXPECT_EQ(process.wait_end(5), 2);
}

TEST(Lifecycle, StrangersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "root is needed to become another user";
  OptimizerProcess process;
  // The folder excludes them; should it be opened, the peer's credentials do.
  chmod(fs::path(process.folder()).parent_path().c_str(), 0755);
  chmod(process.folder().c_str(), 0755);
  chmod(process.socket().c_str(), 0777);
  const pid_t child = in_child([&] {
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) return 2;
    const Connection connection(process.socket());
    if (!connection.good()) return 3;
    connection.send(MessageKind::kStatus, "");
    const auto reply = connection.receive();
    return reply && reply->header.kind == MessageKind::kRefused &&
                   reply->body.find("user 0") != std::string::npos
               ? 0
               : 4;
  });
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_NE(status(process.socket()), "");
}

TEST(Lifecycle, AnotherVersionIsRefusedInOneLine) {
  OptimizerProcess process;
  const auto reply =
      ask(process.socket(), MessageKind::kHello,
          bytes_of(protocol::Hello{static_cast<uint32_t>(getpid()), 0}), protocol::kVersion + 1);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.kind, MessageKind::kRefused);
  EXPECT_EQ(reply->header.version, protocol::kVersion);
  EXPECT_NE(reply->body.find("version"), std::string::npos);
  EXPECT_EQ(reply->body.find('\n'), std::string::npos);
}

TEST(Lifecycle, GarbageIsRefusedAndServiceContinues) {
  OptimizerProcess process;
  for (const size_t size : {1UL, 15UL, 16UL, 40UL, 4096UL, 20000UL}) {
    const Connection connection(process.socket());
    ASSERT_TRUE(connection.send_bytes(std::string(size, 'x')));
    const auto reply = connection.receive();
    ASSERT_TRUE(reply) << size;
    EXPECT_EQ(reply->header.kind, MessageKind::kRefused);
  }
  {
    const Connection silent(process.socket());  // connects, says nothing, leaves
  }
  EXPECT_NE(status(process.socket()), "");
}

TEST(Lifecycle, ManySilentConnectionsDoNotExcludeOthers) {
  OptimizerProcess process;
  std::vector<std::unique_ptr<Connection>> silent;
  silent.reserve(200);
  for (int i = 0; i < 200; ++i) silent.push_back(std::make_unique<Connection>(process.socket()));
  EXPECT_NE(status(process.socket()), "");
}

TEST(Lifecycle, DetachedItHasNoTiesToItsParent) {
  const TempFolder parent;
  const std::string socket = parent.path() + "/seat/v.sock";
  const std::string program =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path() /
      "sluice-optimizer";
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  sigset_t all;
  sigfillset(&all);
  const pid_t child = fork();
  if (child == 0) {
    // As badly as a job can leave things: a pipe as output, every signal blocked, another folder.
    dup2(pipes[1], 1);
    dup2(pipes[1], 2);
    close(pipes[0]);
    close(pipes[1]);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    signal(SIGTERM, SIG_IGN);
    if (chdir(parent.path().c_str()) != 0) _exit(1);
    execl(program.c_str(), program.c_str(), "--socket", socket.c_str(), nullptr);
    _exit(127);
  }
  close(pipes[1]);
  ASSERT_TRUE(eventually([&] { return status(socket) != ""; }));
  char byte = 0;
  EXPECT_EQ(read(pipes[0], &byte, 1), 0);  // no process holds the pipe any more
  close(pipes[0]);
  const std::string proc = "/proc/" + std::to_string(child);
  EXPECT_EQ(fs::read_symlink(proc + "/cwd"), "/");
  EXPECT_EQ(getsid(child), child);
  EXPECT_EQ(fs::read_symlink(proc + "/fd/1"), "/dev/null");
  kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_FALSE(fs::exists(parent.path() + "/seat"));
}

}  // namespace
}  // namespace sluice::test
