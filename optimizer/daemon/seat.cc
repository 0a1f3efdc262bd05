#include "optimizer/daemon/seat.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "protocol/place.h"

namespace sluice::optimizer {
namespace {

constexpr int kPollMs = 2;
constexpr int kHandoverMs = 10000;

std::string standard_path() {
  char cgroup[8192] = {};
  const UniqueFd fd(open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC));
  if (fd) {
    const ssize_t got = read(fd.get(), cgroup, sizeof cgroup - 1);
    cgroup[got > 0 ? got : 0] = '\0';
  }
  struct stat mounts {};
  if (stat("/proc/self/ns/mnt", &mounts) != 0) mounts.st_ino = 0;
  char path[sizeof(sockaddr_un::sun_path)];
  if (!protocol::socket_path(path, sizeof path, geteuid(), mounts.st_ino,
                             protocol::memory_cgroup_hash(cgroup))) {
    return "";
  }
  return path;
}

std::string error_text(const std::string& what) { return what + ": " + strerror(errno); }

}  // namespace

bool Seat::make_folder(std::string* reason) {
  if (mkdir(folder_.c_str(), 0700) == 0) {
    made_folder_ = true;
  } else if (errno != EEXIST) {
    *reason = error_text(folder_);
    return false;
  }
  struct stat info {};
  if (lstat(folder_.c_str(), &info) != 0) {
    *reason = error_text(folder_);
  } else if (!S_ISDIR(info.st_mode)) {
    *reason = folder_ + ": not a folder; name another with SLUICE_SOCKET";
  } else if (info.st_uid != geteuid()) {
    *reason = folder_ + ": belongs to user " + std::to_string(info.st_uid) +
              "; name another with SLUICE_SOCKET";
  } else if ((info.st_mode & 0777) != 0700) {
    char mode[8];
    snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
    *reason =
        folder_ + ": its mode is " + mode + "; chmod 700 it, or name another with SLUICE_SOCKET";
  } else {
    return true;
  }
  return false;
}

bool Seat::lock(bool* busy, std::string* reason) {
  // An ending optimizer removes the lock file while it holds the lock. A lock on a file that is no
  // longer linked under its name protects nothing, so compare the inodes after locking.
  for (int attempt = 0; attempt < 100; ++attempt) {
    UniqueFd file(open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) {
      *reason = error_text(lock_path_);
      return false;
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      *busy = errno == EWOULDBLOCK;
      if (!*busy) *reason = error_text(lock_path_);
      return false;
    }
    struct stat held {
    }, named{};
    if (fstat(file.get(), &held) == 0 && stat(lock_path_.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
      lock_ = std::move(file);  // only one that is held: leave() removes its file
      return true;
    }
  }
  *reason = lock_path_ + ": cannot be locked";
  return false;
}

bool Seat::listen_on(std::string* reason) {
  listener_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string temporary = path_ + "~";
  if (temporary.size() >= sizeof address.sun_path) {
    *reason = path_ + ": too long for a socket";
    return false;
  }
  memcpy(address.sun_path, temporary.c_str(), temporary.size() + 1);
  unlink(temporary.c_str());
  struct stat info {};
  // Listens before the rename, so that a client that finds the final name is never refused by a
  // socket that does not listen yet.
  if (!listener_ ||
      bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_.get(), 128) != 0 || lstat(temporary.c_str(), &info) != 0 ||
      rename(temporary.c_str(), path_.c_str()) != 0) {
    *reason = error_text(path_);
    unlink(temporary.c_str());
    return false;
  }
  socket_inode_ = info.st_ino;
  made_socket_ = true;
  return true;
}

bool Seat::no_listener() const { return access(path_.c_str(), F_OK) != 0 && errno == ENOENT; }

Seat::Result Seat::take(const std::string& path, std::string* reason) {
  path_ = path.empty() ? standard_path() : path;
  if (path_.empty() || path_.front() != '/') {
    *reason = "the socket's path must be absolute: '" + path_ + "'";
    return Result::kRefused;
  }
  made_folder_ = path.empty();  // leave() removes the standard folder in any case
  folder_ = path_.substr(0, path_.find_last_of('/'));
  const bool dotted = path_.size() > 5 && path_.compare(path_.size() - 5, 5, ".sock") == 0;
  lock_path_ = (dotted ? path_.substr(0, path_.size() - 5) : path_) + ".lock";
  int waited_ms = 0;
  for (int attempt = 0; attempt < 10;) {
    if (!make_folder(reason)) return Result::kRefused;
    reason->clear();
    bool busy = false;
    if (lock(&busy, reason)) return listen_on(reason) ? Result::kTaken : Result::kRefused;
    if (busy) {
      // The job that started this process found no listening optimizer. One that is ending does not
      // listen any more, but holds the lock until it has removed its files: wait for that.
      if (!no_listener() || waited_ms >= kHandoverMs) return Result::kBusy;
      usleep(kPollMs * 1000);
      waited_ms += kPollMs;
      continue;
    }
    // ENOENT: an optimizer that just ended has removed its empty folder.
    if (access(folder_.c_str(), F_OK) == 0) break;
    ++attempt;
  }
  return Result::kRefused;
}

bool Seat::still_ours() const {
  struct stat info {};
  return lstat(path_.c_str(), &info) == 0 && info.st_ino == socket_inode_;
}

void Seat::stop_listening() {
  if (made_socket_ && still_ours()) unlink(path_.c_str());
  made_socket_ = false;
  listener_.reset();
}

void Seat::leave() {
  stop_listening();
  if (lock_) {
    struct stat held {
    }, named{};
    if (fstat(lock_.get(), &held) == 0 && stat(lock_path_.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino) {
      unlink(lock_path_.c_str());
    }
    lock_.reset();
    if (made_folder_) rmdir(folder_.c_str());
  }
}

}  // namespace sluice::optimizer
