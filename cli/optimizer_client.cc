#include "cli/optimizer_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/files.h"
#include "cli/text.h"
#include "protocol/control.h"
#include "protocol/place.h"

namespace sluice::cli {
namespace {

using protocol::MessageHeader;
using protocol::MessageKind;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxStatus = 64 << 20;  // the largest JSON text that is accepted, bytes
constexpr std::chrono::milliseconds kRetry{5};

int milliseconds_left(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

Reply problem(const std::string& text) { return {Answer::kProblem, text}; }

Reply none(const std::string& socket) {
  return {Answer::kNone, fmt::format("no optimizer is running ({})", one_line(socket))};
}

Reply no_answer() { return problem("the optimizer does not answer"); }

// 0 if the name does not exist.
ino_t inode_of(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

Reply check_peer(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return problem(std::string("cannot identify the listening process:  ") + strerror(errno));
  }
  if (peer.uid != geteuid()) {
    return problem(fmt::format("user {} listens there, not user {}: refused", peer.uid, geteuid()));
  }
  return {Answer::kGood, ""};
}

Reply connect_to(const std::string& path, Clock::time_point deadline, UniqueFd* connection) {
  Reply folder = check_folder(path);
  if (folder.answer != Answer::kGood) return folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return problem(one_line(path) + ": too long for a socket");
  }
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  connection->reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!*connection) return problem(std::string("socket: ") + strerror(errno));
  // EAGAIN: its queue of connections is full, and no event reports when it no longer is.
  while (connect(connection->get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return none(path);
    if (errno != EAGAIN && errno != EINTR) return problem(one_line(path) + ": " + strerror(errno));
    if (milliseconds_left(deadline) == 0) return no_answer();
    std::this_thread::sleep_for(kRetry);
  }
  return check_peer(connection->get());
}

// An empty packet looks like the end of the connection: both end the exchange.
Reply receive(int connection, Clock::time_point deadline, MessageHeader* header,
              std::string* body) {
  std::vector<char> packet(protocol::kMaxPacket);
  pollfd ready{connection, POLLIN, 0};
  if (poll(&ready, 1, milliseconds_left(deadline)) <= 0) return no_answer();
  // Without room for control data the kernel closes any descriptor that is attached.
  const ssize_t got = recv(connection, packet.data(), packet.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return problem(std::string("the optimizer went away: ") + strerror(errno));
  if (got == 0) return problem("the optimizer closed the connection");
  const auto size = static_cast<size_t>(got);
  if (size < sizeof *header || size > packet.size()) return problem("an answer of a wrong size");
  memcpy(header, packet.data(), sizeof *header);
  if (header->magic != protocol::kControlMagic) return problem("not a Sluice answer");
  if (header->version != protocol::kVersion) {
    return problem(fmt::format("the optimizer speaks protocol {}, this program {}", header->version,
                               protocol::kVersion));
  }
  body->assign(packet.data() + sizeof *header, size - sizeof *header);
  if (header->kind == MessageKind::kRefused) {
    return problem("the optimizer refuses: " + one_line(*body));
  }
  return {Answer::kGood, ""};
}

Reply ask(const std::string& path, MessageKind kind, Clock::time_point deadline,
          UniqueFd* connection) {
  Reply reply = connect_to(path, deadline, connection);
  if (reply.answer != Answer::kGood) return reply;
  MessageHeader header;
  header.kind = kind;
  if (send(connection->get(), &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(sizeof header)) {
    return problem(std::string("the optimizer takes no message: ") + strerror(errno));
  }
  return reply;
}

}  // namespace

std::string problem_text(const Reply& reply) {
  return reply.mend.empty() ? reply.text : reply.text + "; " + reply.mend;
}

std::string socket_of(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  const std::string cgroup = read_text("/proc/self/cgroup");
  struct stat mounts {};
  if (stat("/proc/self/ns/mnt", &mounts) != 0) mounts.st_ino = 0;
  char path[sizeof(sockaddr_un::sun_path)];
  const bool fits = protocol::socket_path(path, sizeof path, geteuid(), mounts.st_ino,
                                          protocol::memory_cgroup_hash(cgroup.c_str()));
  return fits ? path : "";
}

Reply check_folder(const std::string& socket) {
  if (socket.empty() || socket[0] != '/') {
    return problem("the socket's path must be absolute: '" + one_line(socket) + "'");
  }
  const std::string folder = socket.substr(0, socket.rfind('/'));
  const std::string shown = one_line(folder);
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0) {
    return errno == ENOENT ? none(socket) : problem(shown + ": " + strerror(errno));
  }
  const std::string another = "name another with SLUICE_SOCKET";
  if (!S_ISDIR(status.st_mode)) {
    return {Answer::kProblem, shown + ": not a folder: refused", another};
  }
  if (status.st_uid != geteuid()) {
    return {Answer::kProblem, fmt::format("{}: belongs to user {}: refused", shown, status.st_uid),
            another};
  }
  if ((status.st_mode & 0777) != 0700) {
    return {
        Answer::kProblem,
        fmt::format("{}: its mode is {:04o} and not 0700: refused", shown, status.st_mode & 0777),
        fmt::format("chmod 700 {}, or {}", shown, another)};
  }
  return {Answer::kGood, ""};
}

Reply sockets_of_user(std::vector<std::string>* sockets) {
  char folder[sizeof(sockaddr_un::sun_path)];
  if (!protocol::socket_folder(folder, sizeof folder, geteuid())) return problem("no folder");
  Reply reply = check_folder(fmt::format("{}/", folder));
  if (reply.answer != Answer::kGood) return reply;
  const std::string begin = fmt::format("v{}-", protocol::kVersion);
  std::error_code failure;
  for (std::filesystem::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename();
    if (name.starts_with(begin) && name.ends_with(".sock")) sockets->push_back(entry->path());
  }
  if (failure) return problem(fmt::format("{}: {}", folder, failure.message()));
  std::sort(sockets->begin(), sockets->end());
  if (sockets->size() > kMostSockets) sockets->resize(kMostSockets);
  return reply;
}

Reply ask_status(const std::string& socket) {
  const auto deadline = Clock::now() + kAnswerDeadline;
  UniqueFd connection;
  Reply reply = ask(socket, MessageKind::kStatus, deadline, &connection);
  if (reply.answer != Answer::kGood) return reply;
  std::string text;
  MessageHeader header;
  do {
    std::string piece;
    reply = receive(connection.get(), deadline, &header, &piece);
    if (reply.answer != Answer::kGood) return reply;
    if (header.kind != MessageKind::kStatusText) return problem("an answer to another question");
    text += piece;
    if (text.size() > kMaxStatus) return problem("an answer without an end");
  } while (header.more != 0);
  return {Answer::kGood, text};
}

Reply stop_optimizer(const std::string& socket) {
  const auto deadline = Clock::now() + kStopDeadline;
  const ino_t asked = inode_of(socket);
  UniqueFd connection;
  Reply reply = ask(socket, MessageKind::kStop, deadline, &connection);
  if (reply.answer != Answer::kGood) return reply;
  MessageHeader header;
  std::string body;
  reply = receive(connection.get(), deadline, &header, &body);
  // An optimizer that exits may close the connection before it answers: its socket decides.
  if (reply.answer == Answer::kGood && header.kind != MessageKind::kGone) {
    return problem("an answer to another question");
  }
  if (reply.answer == Answer::kGood) reply = problem("the optimizer does not end");
  do {
    // Another inode belongs to another optimizer, which a job has started in the meantime.
    if (inode_of(socket) != asked) return {Answer::kGood, ""};
    std::this_thread::sleep_for(kRetry);
  } while (milliseconds_left(deadline) > 0 && header.kind != MessageKind::kRefused);
  return reply;
}

}  // namespace sluice::cli
