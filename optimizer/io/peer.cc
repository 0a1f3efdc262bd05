#include "optimizer/io/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>
#include <string>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

// Whether `link` in /proc/PID is the same for both processes. `optional`: a kernel without such
// links has one namespace for all.
bool same(uint32_t pid, const char* link, bool optional = false) {
  struct stat ours {
  }, theirs{};
  if (stat((std::string("/proc/self/") + link).c_str(), &ours) != 0) {
    return optional && errno == ENOENT;
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/" + link;
  return stat(path.c_str(), &theirs) == 0 && ours.st_ino == theirs.st_ino &&
         ours.st_dev == theirs.st_dev;
}

// The lines of a /proc/PID/status that say what a thread may open. Empty: it cannot be read.
std::string rights_of(const std::string& thread) {
  const UniqueFd fd(open(("/proc/" + thread + "/status").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 16384> text;
  const ssize_t size = fd ? read(fd.get(), text.data(), text.size()) : -1;
  if (size <= 0 || static_cast<size_t>(size) == text.size()) return {};
  std::istringstream lines(std::string(text.data(), static_cast<size_t>(size)));
  std::string rights;
  for (std::string line; std::getline(lines, line);) {
    for (const char* name :
         {"Uid:", "Gid:", "Groups:", "CapEff:", "Seccomp:", "Seccomp_filters:"}) {
      if (line.starts_with(name)) rights += line + "\n";
    }
    if (line.starts_with("NoNewPrivs:") && !line.ends_with("\t0")) return {};
  }
  return rights;
}

}  // namespace

bool shares_pid_namespace(uint32_t pid) { return same(pid, "ns/pid"); }

bool shares_time_namespace(uint32_t pid) { return same(pid, "ns/time", true); }

bool shares_paths(uint32_t pid) { return same(pid, "ns/mnt") && same(pid, "root"); }

bool shares_rights(uint32_t pid, uint32_t thread) {
  static const std::string ours = rights_of("thread-self");  // the optimizer changes none of it
  return !ours.empty() &&
         rights_of(std::to_string(pid) + "/task/" + std::to_string(thread)) == ours;
}

Life life_of(uint32_t pid, int* pidfd) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM) return Life::kEnded;
    return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH ? Life::kEnded : Life::kUnknown;
  }
  pollfd ended{fd.get(), POLLIN, 0};
  if (poll(&ended, 1, 0) != 0) return Life::kEnded;
  if (pidfd != nullptr) *pidfd = fd.release();
  return Life::kAlive;
}

}  // namespace sluice::optimizer
