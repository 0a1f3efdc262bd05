#include "optimizer/stage/stage_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::optimizer {
namespace {

constexpr uint32_t kMoves = IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_CREATE | IN_ONLYDIR;
constexpr uint32_t kContents =
    kMoves | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_CLOSE_WRITE;

}  // namespace

StageWatch::StageWatch() : fd_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

size_t StageWatch::size() const {
  const std::lock_guard lock(mutex_);
  return folders_.size();
}

bool StageWatch::watch(const std::string& folder, uint32_t mask) {
  // Outside of the lock: the file system may make us wait.
  const int number = inotify_add_watch(fd_.get(), folder.c_str(), mask | IN_MASK_ADD);
  if (number < 0) return false;
  const std::lock_guard lock(mutex_);
  folders_[number].insert(folder);
  return true;
}

bool StageWatch::add(const std::string& folder) {
  {
    const std::lock_guard lock(mutex_);
    if (done_.count(folder) != 0) return true;
  }
  if (!watch(folder, kContents)) return false;
  for (size_t slash = folder.rfind('/'); slash != std::string::npos && slash > 0;
       slash = folder.rfind('/', slash - 1)) {
    const std::string above = folder.substr(0, slash);
    {
      const std::lock_guard lock(mutex_);
      if (!above_.insert(above).second) break;
    }
    if (!watch(above, kMoves)) return false;
  }
  const std::lock_guard lock(mutex_);
  done_.insert(folder);
  return true;
}

void StageWatch::read(std::vector<Change>* changes, bool* lost) {
  alignas(inotify_event) char buffer[16384];
  for (;;) {
    const ssize_t got = ::read(fd_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const std::lock_guard lock(mutex_);
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        *lost = true;
        continue;
      }
      const auto folder = folders_.find(event->wd);
      if (folder == folders_.end()) continue;
      for (const std::string& name : folder->second) {
        changes->push_back({event->len > 0 ? name + "/" + event->name : name});
        if ((event->mask & IN_IGNORED) == 0) continue;
        done_.erase(name);  // removed or unmounted: to be added anew
        above_.erase(name);
      }
      if ((event->mask & IN_IGNORED) != 0) folders_.erase(folder);
    }
  }
}

}  // namespace sluice::optimizer
