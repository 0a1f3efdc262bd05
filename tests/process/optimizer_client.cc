#include "tests/process/optimizer_client.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "optimizer/io/clock.h"
#include "optimizer/io/residency.h"

namespace sluice::test {

using optimizer::now_ns;
using protocol::MessageKind;

bool eventually(const std::function<bool()>& condition, double seconds) {
  const uint64_t deadline = now_ns() + static_cast<uint64_t>(seconds * 1e9);
  while (!condition()) {
    if (now_ns() > deadline) return false;
    usleep(2000);
  }
  return true;
}

TempFolder::TempFolder() {
  char name[] = "/tmp/sluice-test-XXXXXX";
  if (mkdtemp(name) != nullptr) path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::cold_file(const std::string& name, uint64_t bytes) const {
  std::string path = path_ + "/" + name;
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  std::vector<char> data(1 << 20, 'x');
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t wrote =
        write(fd.get(), data.data(), std::min<uint64_t>(data.size(), bytes - done));
    if (wrote <= 0) break;
    done += static_cast<uint64_t>(wrote);
  }
  fsync(fd.get());
  evict(path);
  return path;
}

void evict(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
}

uint64_t cached(const std::string& path, uint64_t begin, uint64_t end) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  uint64_t bytes = 0;
  return optimizer::cached_bytes(fd.get(), {begin, end}, false, &bytes) ? bytes : 0;
}

uint64_t fetched(const std::string& path, uint64_t begin, uint64_t end) {
  constexpr long kCachestat = 451;  // Debian 12's headers lack it
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  uint64_t range[2] = {begin, end - begin};
  struct {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;  // pages
  } found{};
  if (syscall(kCachestat, fd.get(), range, &found, 0) != 0) return cached(path, begin, end);
  return std::min((found.cached + found.evicted) * 4096, end - begin);
}

OptimizerProcess::OptimizerProcess(const std::vector<std::string>& arguments) {
  folder_ = parent_.path() + "/seat";
  socket_ = folder_ + "/v.sock";
  const auto asked = std::find(arguments.begin(), arguments.end(), "--socket");
  if (asked != arguments.end()) socket_ = *std::next(asked);
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return;
  const std::string program =
      std::filesystem::path(self).parent_path().parent_path().parent_path() / "sluice-optimizer";
  std::vector<std::string> words{program, "--socket", socket_, "--foreground"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  pid_ = fork();
  if (pid_ == 0) {
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  eventually([this] { return access(socket_.c_str(), F_OK) == 0 || ended(); });
}

OptimizerProcess::~OptimizerProcess() {
  if (pid_ <= 0) return;
  signal(SIGTERM);
  if (!wait_end(5)) {
    signal(SIGKILL);
    wait_end(5);
  }
}

void OptimizerProcess::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

bool OptimizerProcess::ended() {
  if (pid_ <= 0) return true;
  if (waitpid(pid_, &status_, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

std::optional<int> OptimizerProcess::wait_end(double seconds) {
  if (!eventually([this] { return ended(); }, seconds)) return std::nullopt;
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

Connection::Connection(const std::string& path) {
  fd_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd_.reset();
}

bool Connection::send_bytes(const std::string& packet, int fd) const {
  iovec vector{const_cast<char*>(packet.data()), packet.size()};
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
  return sendmsg(fd_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size());
}

bool Connection::send(MessageKind kind, const std::string& body, int fd, uint32_t version) const {
  protocol::MessageHeader header;
  header.kind = kind;
  header.version = version;
  return send_bytes(bytes_of(header) + body, fd);
}

std::optional<Reply> Connection::receive(double seconds) const {
  pollfd ready{fd_.get(), POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(seconds * 1000)) != 1) return std::nullopt;
  std::string packet(protocol::kMaxPacket, '\0');
  iovec vector{packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
  Reply reply;
  if (got < static_cast<ssize_t>(sizeof reply.header)) return std::nullopt;
  memcpy(&reply.header, packet.data(), sizeof reply.header);
  reply.body = packet.substr(sizeof reply.header, static_cast<size_t>(got) - sizeof reply.header);
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  if (part != nullptr && part->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    memcpy(&fd, CMSG_DATA(part), sizeof fd);
    reply.fd.reset(fd);
  }
  return reply;
}

Client::~Client() {
  if (shared_ != nullptr) munmap(shared_, sizeof(protocol::Shared));
}

bool Client::hello(const std::string& socket, const std::string& options) {
  socket_ = socket;
  const Connection connection(socket);
  const protocol::Hello hello{static_cast<uint32_t>(getpid()), 0};
  if (!connection.good() || !connection.send(MessageKind::kHello, bytes_of(hello) + options)) {
    return false;
  }
  const auto reply = connection.receive();
  if (!reply || reply->header.kind != MessageKind::kWelcome || !reply->fd) {
    refusal_ = reply ? reply->body : "";
    return false;
  }
  memcpy(&welcome_, reply->body.data(), sizeof welcome_);
  void* map = mmap(nullptr, sizeof(protocol::Shared), PROT_READ | PROT_WRITE, MAP_SHARED,
                   reply->fd.get(), 0);
  if (map == MAP_FAILED) return false;
  shared_ = static_cast<protocol::Shared*>(map);
  return true;
}

bool Client::claim() {
  slot_ = protocol::claim_slot(*shared_, static_cast<uint32_t>(getpid()));
  return slot_ != nullptr;
}

std::optional<protocol::FileKnown> Client::file(const std::string& path, uint32_t mapped) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file_through(fd.get(), path, 0, mapped);
}

std::optional<protocol::FileKnown> Client::file_through(int fd, const std::string& name,
                                                        uint64_t lie, uint32_t mapped) {
  struct stat info {};
  fstat(fd, &info);
  protocol::File file{};
  file.session = welcome_.session;
  file.token = welcome_.token;
  file.device = info.st_dev;
  file.inode = info.st_ino + lie;
  file.size = static_cast<uint64_t>(info.st_size);
  file.mapped = mapped;
  const Connection connection(socket_);
  if (!connection.send(MessageKind::kFile, bytes_of(file) + name, fd)) return std::nullopt;
  const auto reply = connection.receive();
  if (!reply || reply->header.kind != MessageKind::kFileKnown) {
    refusal_ = reply ? reply->body : "";
    return std::nullopt;
  }
  protocol::FileKnown known{};
  memcpy(&known, reply->body.data(), sizeof known);
  return known;
}

bool Client::push(const protocol::EventData& data) {
  const bool pushed = protocol::push(*slot_, data);
  if (protocol::ring_doorbell(shared_->header)) {
    syscall(SYS_futex, &shared_->header.doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  return pushed;
}

bool Client::trip(uint32_t file, uint64_t offset, uint64_t length) {
  return push({offset, length, now_ns(), 0, file, static_cast<uint32_t>(gettid()),
               protocol::EventKind::kTrip, 0});
}

bool Client::read(uint32_t file, uint64_t offset, uint64_t length) {
  return push({offset, length, now_ns(), 0, file, static_cast<uint32_t>(gettid()),
               protocol::EventKind::kRead, 0});
}

bool Client::bye(double seconds) {
  const Connection connection(socket_);
  const protocol::Bye bye{welcome_.session, welcome_.token};
  if (!connection.good() || !connection.send(MessageKind::kBye, bytes_of(bye))) return false;
  const auto reply = connection.receive(seconds);
  return reply && reply->header.kind == MessageKind::kGone;
}

uint64_t Client::metric(protocol::SessionMetric metric) const {
  return shared_->header.metrics[static_cast<size_t>(metric)].load(std::memory_order_relaxed);
}

std::string status(const std::string& socket) {
  const Connection connection(socket);
  if (!connection.good() || !connection.send(MessageKind::kStatus, "")) return "";
  std::string text;
  for (;;) {
    const auto reply = connection.receive();
    if (!reply || reply->header.kind != MessageKind::kStatusText) return "";
    text += reply->body;
    if (reply->header.more == 0) return text;
  }
}

}  // namespace sluice::test
