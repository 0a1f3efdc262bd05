// When the control socket closes connections that are idle. The clock is the test's.
#include "optimizer/loop/server.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <vector>

#include "optimizer/loop/event_loop.h"
#include "tests/process/optimizer_client.h"

namespace sluice::test {
namespace {

using optimizer::EventLoop;
using optimizer::kSecond;
using optimizer::Server;
using protocol::MessageKind;

constexpr uint64_t kIdle = 30 * kSecond;

UniqueFd listen_at(const std::string& path) {
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), 8) != 0) {
    listener.reset();
  }
  return listener;
}

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    server_.on_packet = [this](const optimizer::Peer& peer, std::span<const std::byte>,
                               const std::vector<UniqueFd>&) { asked_.push_back(peer.connection); };
  }
  // The number of a connection that has asked a question.
  uint64_t ask(const Connection& connection) {
    const size_t before = asked_.size();
    EXPECT_TRUE(connection.send(MessageKind::kStatus, ""));
    EXPECT_TRUE(eventually([&] {
      loop_.turn(0);
      return asked_.size() > before;
    }));
    return asked_.back();
  }

  const TempFolder folder_;
  const std::string path_ = folder_.path() + "/socket";
  const UniqueFd stop_{eventfd(0, EFD_CLOEXEC)}, listener_ = listen_at(path_);
  std::vector<uint64_t> asked_;
  EventLoop loop_{stop_.get()};
  Server server_{&loop_, listener_.get()};
};

TEST_F(ServerTest, OnesThatAreIdleAreClosed) {
  const Connection connection(path_);
  const uint64_t id = ask(connection);
  const uint64_t asked = optimizer::now_ns();  // later than it was
  server_.tick(asked + kIdle - kSecond);
  EXPECT_TRUE(server_.connected(id));
  server_.tick(asked + kIdle + 1);
  EXPECT_FALSE(server_.connected(id));
}

// Choosing among many samples takes longer than that, and only the optimizer says anything then.
TEST_F(ServerTest, OneIsNotIdleWhileItsQuestionIsWorkedOn) {
  const Connection idle(path_), waiting(path_);
  const uint64_t quiet = ask(idle), worked_on = ask(waiting);
  const uint64_t asked = optimizer::now_ns();
  ASSERT_TRUE(eventually([&] { return optimizer::now_ns() > asked; }));
  server_.send(worked_on, MessageKind::kWorking, {});
  server_.tick(asked + kIdle + 1);
  EXPECT_FALSE(server_.connected(quiet));
  EXPECT_TRUE(server_.connected(worked_on));
  server_.tick(optimizer::now_ns() + kIdle + 1);
  EXPECT_FALSE(server_.connected(worked_on));
}

// The time of a tick is taken before the work that comes in between.
TEST_F(ServerTest, OneThatWasHeardSinceTheTickBeganIsNotIdle) {
  const uint64_t began = optimizer::now_ns();
  const Connection connection(path_);
  const uint64_t id = ask(connection);
  server_.send(id, MessageKind::kWorking, {});
  server_.tick(began - 1);
  EXPECT_TRUE(server_.connected(id));
}

}  // namespace
}  // namespace sluice::test
