// The control socket: accepts connections, checks the peer's user, passes whole packets to the
// handler and sends responses. Never blocks. Core thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "protocol/control.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct Peer {
  uint64_t connection = 0;
  uint32_t pid = 0, uid = 0;
};

class Server {
 public:
  // Receives one packet and owns `fds`, the descriptors that it carried.
  using Handler =
      std::function<void(const Peer&, std::span<const std::byte>, std::vector<UniqueFd> fds)>;
  // epoll_ctl for `fd`; its events are to reach on_ready() with `connection`.
  using Watch = std::function<void(int fd, uint64_t connection, uint32_t events, bool add)>;

  Server(int listener, Handler handler, Watch watch)
      : listener_(listener), handler_(std::move(handler)), watch_(std::move(watch)) {}

  // False: a connection waits but the process is out of descriptors: call again a little later.
  bool on_listener(uint64_t now_ns);
  void on_ready(uint64_t connection, uint32_t events, uint64_t now_ns);
  // Closes connections that have been idle for long.
  void expire(uint64_t now_ns);

  // Queues one packet. `fd` is duplicated and sent with it unless negative. Unknown connections
  // (closed since) are ignored.
  void send(uint64_t connection, protocol::MessageKind kind, std::span<const std::byte> body,
            int fd = -1, bool more = false);
  void refuse(uint64_t connection, const std::string& reason);
  // Sends a text of any length, in several packets if needed.
  void send_text(uint64_t connection, const std::string& text);
  bool idle() const;  // nothing waits to be sent
  bool connected(uint64_t id) const { return connections_.count(id) != 0; }

 private:
  struct Outgoing {
    std::vector<std::byte> packet;
    UniqueFd fd;
  };
  struct Connection {
    UniqueFd fd;
    Peer peer;
    uint64_t last_ns = 0;
    std::deque<Outgoing> out;
    bool watching_write = false;
    bool refused = false;  // its packets are discarded
  };

  void receive(Connection& connection, bool* closed);
  void forget_refused();
  bool flush(Connection& connection);  // false: the connection broke

  const int listener_;
  const Handler handler_;
  const Watch watch_;
  uint64_t next_ = 1;
  std::map<uint64_t, Connection> connections_;
  UniqueFd spare_;     // closed to accept one more connection when no descriptor is left
  bool said_ = false;  // the lack of descriptors was reported
};

}  // namespace sluice::optimizer
