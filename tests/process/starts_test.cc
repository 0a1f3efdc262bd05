// What commands opened as they started, as a real optimizer stores it; and whatever a job says of
// it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tests/process/optimizer_client.h"

namespace sluice::test {
namespace {

using protocol::MessageKind;

class StartsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(client_.hello(optimizer_.socket(), "places=" + places() + "\n"));
    ASSERT_TRUE(client_.claim());
  }

  std::string places() const { return folder_.path() + "/places"; }
  static UniqueFd memory(const std::string& text) {
    UniqueFd fd(memfd_create("start", MFD_CLOEXEC));
    EXPECT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return fd;
  }
  std::optional<MessageKind> ask(MessageKind kind, const std::string& body, int fd = -1) const {
    const Connection connection(optimizer_.socket());
    if (!connection.send(kind, body, fd)) return std::nullopt;
    const std::optional<Reply> reply = connection.receive();
    return reply ? std::optional(reply->header.kind) : std::nullopt;
  }
  std::optional<MessageKind> start(const std::string& command) const {
    const protocol::Start body{client_.welcome().session, client_.welcome().token};
    return ask(MessageKind::kStart, bytes_of(body) + command);
  }
  std::optional<MessageKind> started(uint64_t count, uint64_t bytes, int fd) const {
    protocol::Samples body{};
    body.session = client_.welcome().session;
    body.token = client_.welcome().token;
    body.count = count;
    body.bytes = bytes;
    return ask(MessageKind::kStarted, bytes_of(body), fd);
  }
  std::optional<MessageKind> started(uint64_t count, const std::string& text) const {
    return started(count, text.size(), memory(text).get());
  }
  bool stored() const {
    return std::filesystem::exists(places()) && !std::filesystem::is_empty(places());
  }

  const TempFolder folder_;
  OptimizerProcess optimizer_;
  Client client_;
};

TEST_F(StartsTest, ACommandThatNeverRanFetchesNothing) {
  EXPECT_EQ(start("/bin/command\nword"), MessageKind::kDone);
  EXPECT_EQ(start("/bin/command\nword"), MessageKind::kDone);
  EXPECT_EQ(start(""), MessageKind::kDone);
  EXPECT_TRUE(client_.bye());
  EXPECT_EQ(client_.metric(protocol::SessionMetric::start_files), 0);
}

TEST_F(StartsTest, FilesOfALocalDiskAreNotStored) {
  const std::string path = folder_.cold_file("file", 10000);
  const std::string text = "command" + std::string(1, '\0') + path + std::string(1, '\0');
  EXPECT_EQ(started(1, text), MessageKind::kDone);
  EXPECT_EQ(start("command"), MessageKind::kDone);
  EXPECT_TRUE(client_.bye());
  EXPECT_EQ(client_.metric(protocol::SessionMetric::start_files), 0);
  optimizer_.signal(SIGTERM);  // what is to be stored is, before it ends
  EXPECT_TRUE(optimizer_.wait_end(10));
  EXPECT_FALSE(stored());
}

TEST_F(StartsTest, WhatMakesNoSenseIsRefused) {
  using namespace std::string_literals;
  for (const std::string& text :
       {""s, "\0"s, "command"s, "command\0relative\0"s, "command\0/a"s, "command\0\0\0"s}) {
    EXPECT_EQ(started(2, text), MessageKind::kRefused) << text.size();
  }
  EXPECT_EQ(started(UINT64_MAX, "command\0/a\0"s), MessageKind::kRefused);
  const UniqueFd fd = memory("command\0/a\0"s);
  EXPECT_EQ(started(1, 1ULL << 40, fd.get()), MessageKind::kRefused);
  EXPECT_EQ(started(1, 5000, fd.get()), MessageKind::kRefused);
  EXPECT_EQ(started(1, 11, -1), MessageKind::kRefused);
  const std::string path = folder_.cold_file("file", 10000);
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(started(1, 11, file.get()), MessageKind::kRefused);
  EXPECT_FALSE(stored());
  EXPECT_FALSE(optimizer_.ended());
}

TEST_F(StartsTest, NothingIsStoredWhereNoPlacesAre) {
  Client other;
  ASSERT_TRUE(other.hello(optimizer_.socket()));
  ASSERT_TRUE(other.claim());
  const protocol::Start body{other.welcome().session, other.welcome().token};
  EXPECT_EQ(ask(MessageKind::kStart, bytes_of(body) + "command"), MessageKind::kRefused);
}

TEST_F(StartsTest, NoFileIsHandedOverThatNoEarlierStartOpened) {
  protocol::TakeFile body{};
  body.session = client_.welcome().session;
  body.token = client_.welcome().token;
  using namespace std::string_literals;
  EXPECT_EQ(ask(MessageKind::kTakeFile, bytes_of(body) + "/etc/passwd\0"s), MessageKind::kDone);
  EXPECT_EQ(ask(MessageKind::kTakeFile, bytes_of(body) + "/etc/passwd"), MessageKind::kRefused);
  EXPECT_EQ(ask(MessageKind::kTakeFile, bytes_of(body) + "etc/passwd\0"s), MessageKind::kRefused);
  EXPECT_EQ(ask(MessageKind::kTakeFile, bytes_of(body)), MessageKind::kRefused);
  EXPECT_EQ(ask(MessageKind::kTakeFile, "short"), MessageKind::kRefused);
  body.token ^= 1;
  EXPECT_EQ(ask(MessageKind::kTakeFile, bytes_of(body) + "/etc/passwd\0"s), MessageKind::kRefused);
}

}  // namespace
}  // namespace sluice::test
