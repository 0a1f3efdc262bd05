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

#include "optimizer/loop/event_loop.h"
#include "protocol/control.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct Peer {
  uint64_t connection = 0;
  uint32_t pid = 0, uid = 0;
};

class Server {
 public:
  // `loop` outlives the server; the caller owns `listener`.
  Server(EventLoop* loop, int listener);

  // Receives one packet and owns `fds`, the descriptors that it carried. Set before the first turn.
  std::function<void(const Peer&, std::span<const std::byte>, std::vector<UniqueFd> fds)> on_packet;

  // Closes connections that have been idle for long, and accepts again if descriptors ran out.
  void tick(uint64_t now_ns);

  // Queues one packet. `fd` is duplicated and sent with it unless negative. Unknown connections
  // (closed since) are ignored.
  void send(uint64_t connection, protocol::MessageKind kind, std::span<const std::byte> body,
            int fd = -1, bool more = false);
  // The same; `fd` itself is sent, which the caller owns: closing it may block. False: it cannot be
  // sent at once, and is not.
  bool hand_over(uint64_t connection, protocol::MessageKind kind, std::span<const std::byte> body,
                 const UniqueFd& fd);
  void refuse(uint64_t connection, const std::string& reason);
  // Sends a text of any length, in several packets if needed.
  void send_text(uint64_t connection, const std::string& text);
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

  // False: a connection waits, but the process is out of descriptors.
  bool accept_all(uint64_t now_ns);
  void on_ready(uint64_t connection, uint32_t events, uint64_t now_ns);
  void receive(Connection& connection, bool* closed);
  void drop_refused();
  void watch(const Connection& connection, uint32_t events);
  // False: see errno.
  static bool send_now(const Connection& connection, std::span<const std::byte> packet, int fd);
  bool flush(Connection& connection);  // false: the connection broke

  EventLoop* const loop_;
  const int listener_;
  uint64_t next_ = 1;
  std::map<uint64_t, Connection> connections_;
  UniqueFd spare_;     // closed to accept one more connection when no descriptor is left
  bool said_ = false;  // the lack of descriptors was reported
  bool deaf_ = false;  // out of descriptors: no connection is accepted until the next tick
};

}  // namespace sluice::optimizer
