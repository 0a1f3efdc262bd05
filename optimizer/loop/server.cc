#include "optimizer/loop/server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

constexpr size_t kMaxConnections = 256;
constexpr size_t kMaxDescriptors = 4;  // taken from one packet; the kernel drops the rest
constexpr size_t kMaxQueued = 4096;    // packets that a peer may leave unread
constexpr uint64_t kIdleNs = 30 * kSecond;
constexpr uint64_t kRefusedNs = kSecond;
constexpr ptrdiff_t kMaxRefused = 16;

std::vector<std::byte> packet_of(protocol::MessageKind kind, std::span<const std::byte> body,
                                 bool more) {
  protocol::MessageHeader header;
  header.kind = kind;
  header.more = more ? 1 : 0;
  std::vector<std::byte> packet(sizeof header + body.size());
  memcpy(packet.data(), &header, sizeof header);
  if (!body.empty()) memcpy(packet.data() + sizeof header, body.data(), body.size());
  return packet;
}

}  // namespace

Server::Server(EventLoop* loop, int listener) : loop_(loop), listener_(listener) {
  loop_->on(EventLoop::Tag::kListener, [this](uint64_t, uint32_t) {
    deaf_ = !accept_all(now_ns());
    if (deaf_) loop_->watch(listener_, EventLoop::Tag::kListener, 0, 0, false);
  });
  loop_->on(EventLoop::Tag::kConnection,
            [this](uint64_t id, uint32_t events) { on_ready(id, events, now_ns()); });
  loop_->watch(listener_, EventLoop::Tag::kListener, 0, EPOLLIN);
}

bool Server::accept_all(uint64_t now_ns) {
  for (;;) {
    if (!spare_) spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    UniqueFd fd(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && (errno == EMFILE || errno == ENFILE)) {
      // Left in the queue the connection would wake the core thread again and again: it is accepted
      // and closed, and its job continues without the optimizer for a while.
      if (!std::exchange(said_, true)) say(Level::kWarn, "no descriptor is left: jobs are refused");
      spare_.reset();
      fd.reset(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) return errno == EAGAIN;
      continue;
    }
    if (!fd) return true;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) continue;
    const uint64_t id = next_++;
    Connection& connection = connections_[id];
    connection.fd = std::move(fd);
    connection.peer = {id, static_cast<uint32_t>(peer.pid), peer.uid};
    connection.last_ns = now_ns;
    const bool stranger = peer.uid != geteuid();
    if (stranger || connections_.size() > kMaxConnections) {
      const std::string reason = stranger
                                     ? "this is the optimizer of user " + std::to_string(geteuid())
                                     : "too many connections";
      if (stranger) say(Level::kWarn, "refused user {} (process {})", peer.uid, peer.pid);
      // Closing at once, with the peer's packet unread, would reset it and lose the reason.
      connection.refused = true;
      refuse(id, reason);
      drop_refused();
    }
    loop_->watch(connection.fd.get(), EventLoop::Tag::kConnection, id, EPOLLIN);
  }
}

// A refused peer gets a moment to read the reason; at most kMaxRefused of them hold descriptors.
void Server::drop_refused() {
  const auto is_refused = [](const auto& entry) { return entry.second.refused; };
  while (std::count_if(connections_.begin(), connections_.end(), is_refused) > kMaxRefused) {
    connections_.erase(std::find_if(connections_.begin(), connections_.end(), is_refused));
  }
}

void Server::receive(Connection& connection, bool* closed) {
  alignas(8) std::byte packet[protocol::kMaxPacket + 1];
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec vector{packet, sizeof packet};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(connection.fd.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  std::vector<UniqueFd> fds;
  if (got >= 0) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
        fds.emplace_back(fd);
      }
    }
  }
  if (got <= 0) {
    *closed = got == 0 || (errno != EAGAIN && errno != EINTR);
    return;
  }
  if (connection.refused) return;
  on_packet(connection.peer, {packet, static_cast<size_t>(got)}, std::move(fds));
}

void Server::on_ready(uint64_t id, uint32_t events, uint64_t now_ns) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  Connection& connection = at->second;
  connection.last_ns = now_ns;
  bool closed = false;
  if ((events & EPOLLIN) != 0) receive(connection, &closed);
  if ((events & EPOLLOUT) != 0) closed |= !flush(connection);
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 && (events & EPOLLIN) == 0) closed = true;
  if (closed) connections_.erase(id);  // closing removes it from the epoll set
}

void Server::tick(uint64_t now_ns) {
  if (std::exchange(deaf_, false)) {
    loop_->watch(listener_, EventLoop::Tag::kListener, 0, EPOLLIN, false);
  }
  std::erase_if(connections_, [now_ns](const auto& entry) {
    const uint64_t quiet = now_ns - std::min(now_ns, entry.second.last_ns);
    return entry.second.refused ? quiet > kRefusedNs : quiet > kIdleNs && entry.second.out.empty();
  });
}

void Server::watch(const Connection& connection, uint32_t events) {
  loop_->watch(connection.fd.get(), EventLoop::Tag::kConnection, connection.peer.connection, events,
               false);
}

bool Server::send_now(const Connection& connection, std::span<const std::byte> packet, int fd) {
  iovec vector{const_cast<std::byte*>(packet.data()), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &fd, sizeof fd);
  }
  return sendmsg(connection.fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool Server::flush(Connection& connection) {
  while (!connection.out.empty()) {
    const Outgoing& next = connection.out.front();
    if (!send_now(connection, next.packet, next.fd.get())) {
      if (errno != EAGAIN && errno != EINTR) return false;
      if (!connection.watching_write) {
        watch(connection, EPOLLIN | EPOLLOUT);
      }
      connection.watching_write = true;
      return true;
    }
    connection.out.pop_front();
  }
  if (connection.watching_write) {
    watch(connection, EPOLLIN);
  }
  connection.watching_write = false;
  return true;
}

void Server::send(uint64_t id, protocol::MessageKind kind, std::span<const std::byte> body, int fd,
                  bool more) {
  const auto at = connections_.find(id);
  if (at == connections_.end() || at->second.out.size() > kMaxQueued) return;
  at->second.last_ns = now_ns();  // one that waits while its question is worked on is not idle
  at->second.out.push_back({packet_of(kind, body, more), UniqueFd(fd >= 0 ? dup(fd) : -1)});
  flush(at->second);  // a broken connection is noticed by its hang-up
}

bool Server::hand_over(uint64_t id, protocol::MessageKind kind, std::span<const std::byte> body,
                       const UniqueFd& fd) {
  const auto at = connections_.find(id);
  return at != connections_.end() && at->second.out.empty() &&
         send_now(at->second, packet_of(kind, body, false), fd.get());
}

void Server::refuse(uint64_t connection, const std::string& reason) {
  send(connection, protocol::MessageKind::kRefused, std::as_bytes(std::span(reason)));
}

void Server::send_text(uint64_t connection, const std::string& text) {
  constexpr size_t kPiece = protocol::kMaxPacket - sizeof(protocol::MessageHeader);
  size_t at = 0;
  do {
    const auto piece = std::span(text).subspan(at, std::min(kPiece, text.size() - at));
    at += piece.size();
    send(connection, protocol::MessageKind::kStatusText, std::as_bytes(piece), -1,
         at < text.size());
  } while (at < text.size());
}

}  // namespace sluice::optimizer
