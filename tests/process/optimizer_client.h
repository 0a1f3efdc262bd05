// Plays the library's part towards a real optimizer process, for tests: starts the optimizer in a
// folder of its own, speaks the control protocol, writes events into the ring.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "protocol/control.h"
#include "protocol/ring_io.h"
#include "protocol/unique_fd.h"

namespace sluice::test {

// Polls `condition` until it holds; false after `seconds`.
bool eventually(const std::function<bool()>& condition, double seconds = 10);

// A fresh folder, mode 0700, removed with what it holds.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  const std::string& path() const { return path_; }
  // A file of `bytes` bytes that no page of is cached.
  std::string cold_file(const std::string& name, uint64_t bytes) const;

 private:
  std::string path_;
};

void evict(const std::string& path);
// Bytes of [begin, end) in the page cache.
uint64_t cached(const std::string& path, uint64_t begin, uint64_t end);
// Bytes of [begin, end) that are in the page cache or were, until the kernel took them. Some
// kernels take pages that lie idle although memory is free (DAMON's pageout, a daemon with
// memory.reclaim), within milliseconds even: a test that waits for all of a range to be cached at
// once may wait for ever. Where the kernel does not report it (no cachestat, before Linux 6.5) as
// `cached`.
uint64_t fetched(const std::string& path, uint64_t begin, uint64_t end);

// One optimizer process, ended by the destructor.
class OptimizerProcess {
 public:
  explicit OptimizerProcess(const std::vector<std::string>& arguments = {});
  OptimizerProcess(const OptimizerProcess&) = delete;
  OptimizerProcess& operator=(const OptimizerProcess&) = delete;
  ~OptimizerProcess();

  const std::string& socket() const { return socket_; }
  const std::string& folder() const { return folder_; }
  pid_t pid() const { return pid_; }
  bool ended();                                 // without waiting
  std::optional<int> wait_end(double seconds);  // exit status, 128 + signal
  void signal(int number) const;

 private:
  TempFolder parent_;
  std::string folder_, socket_;
  pid_t pid_ = -1;
  int status_ = 0;
};

struct Reply {
  protocol::MessageHeader header{};
  std::string body;
  UniqueFd fd;
};

// One connection. Empty optional: refused to connect, closed or timed out.
class Connection {
 public:
  explicit Connection(const std::string& socket);
  bool good() const { return static_cast<bool>(fd_); }
  bool send_bytes(const std::string& packet, int fd = -1) const;
  bool send(protocol::MessageKind kind, const std::string& body, int fd = -1,
            uint32_t version = protocol::kVersion) const;
  std::optional<Reply> receive(double seconds = 5) const;

 private:
  UniqueFd fd_;
};

// A job's session in this process.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // Says hello with these options and maps the memory.
  bool hello(const std::string& socket, const std::string& options = "");
  bool claim();  // a slot for this process
  std::optional<protocol::FileKnown> file(const std::string& path, uint32_t mapped = 1);
  // The same through a descriptor of the caller's; `lie` is added to the inode that is named.
  std::optional<protocol::FileKnown> file_through(int fd, const std::string& name, uint64_t lie = 0,
                                                  uint32_t mapped = 1);
  bool trip(uint32_t file, uint64_t offset, uint64_t length);
  bool read(uint32_t file, uint64_t offset, uint64_t length);
  bool push(const protocol::EventData& data);
  bool bye(double seconds = 5);

  protocol::Shared* shared() const { return shared_; }
  protocol::Slot* slot() const { return slot_; }
  uint64_t metric(protocol::SessionMetric metric) const;
  const protocol::Welcome& welcome() const { return welcome_; }
  const std::string& refusal() const { return refusal_; }  // of the last call that failed

 private:
  std::string socket_, refusal_;
  protocol::Welcome welcome_{};
  protocol::Shared* shared_ = nullptr;
  protocol::Slot* slot_ = nullptr;
};

// The optimizer's status text, "" if it does not answer.
std::string status(const std::string& socket);

template <typename Body>
std::string bytes_of(const Body& body) {
  return {reinterpret_cast<const char*>(&body), sizeof body};
}

}  // namespace sluice::test
