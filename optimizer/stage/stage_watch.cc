#include "optimizer/stage/stage_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace sluice::optimizer {
namespace {

constexpr uint32_t kMoved = IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_CREATE;
constexpr uint32_t kMoves = kMoved | IN_ATTRIB | IN_ONLYDIR;  // IN_ATTRIB: access rights
constexpr uint32_t kWrites = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE;
constexpr uint32_t kSelf = IN_DELETE_SELF | IN_MOVE_SELF;
constexpr uint32_t kContents = kMoves | kWrites | kSelf;
constexpr unsigned kMaxLinks = 40;           // as in the kernel
constexpr size_t kMaxFileWatches = 1 << 16;  // each pins an inode and takes 1 KiB of kernel memory

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> names;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) names.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string last_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string or_root(const std::string& path) { return path.empty() ? "/" : path; }

}  // namespace

StageWatch::StageWatch() : fd_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

size_t StageWatch::size() const {
  const std::lock_guard lock(mutex_);
  return watched_.size();
}

// Watches `path` and calls `note` with the watch, new or known, under the lock. False: errno says
// why. Repeats the call if another thread removed a watch meanwhile: it may have been this one.
template <typename Note>
bool StageWatch::watch(const std::string& path, uint32_t mask, const std::string& label,
                       Note note) {
  for (;;) {
    uint64_t before = 0;
    {
      const std::lock_guard lock(mutex_);
      before = removals_;
    }
    // Not under the lock: the call may block in the file system.
    const int number = inotify_add_watch(fd_.get(), or_root(path).c_str(), mask | IN_MASK_ADD);
    if (number < 0) return false;
    const std::lock_guard lock(mutex_);
    if (removals_ != before) continue;
    note(watched_[number]);
    watches_of_[label].insert(number);
    return true;
  }
}

// Follows `names` from *real through all links, watching each folder before the step in it. Then
// *real is where they lead, free of links. `last_mask` is for the last step's folder.
bool StageWatch::walk(std::string* real, std::vector<std::string> names, const std::string& label,
                      uint32_t last_mask) {
  std::reverse(names.begin(), names.end());
  for (unsigned links = 0; !names.empty();) {
    const std::string name = names.back();
    names.pop_back();
    if (name == ".") continue;
    if (name == "..") {
      *real = parent_of(*real);
      continue;
    }
    const auto note = [&](Watched& watched) { watched.names[name].insert(label); };
    if (!watch(*real, names.empty() ? last_mask : kMoves, label, note)) return false;
    const std::string next = *real + "/" + name;
    char target[PATH_MAX];
    const ssize_t length = readlink(next.c_str(), target, sizeof target);
    if (length < 0 && errno != EINVAL) return false;
    if (length < 0) {  // no link
      *real = next;
      continue;
    }
    if (++links > kMaxLinks) {
      errno = ELOOP;
      return false;
    }
    if (target[0] == '/') real->clear();
    const auto more = split(std::string(target, static_cast<size_t>(length)));
    names.insert(names.end(), more.rbegin(), more.rend());
  }
  return true;
}

bool StageWatch::resolve(const std::string& folder, std::string* real) {
  real->clear();
  if (folder.empty()) return true;
  uint64_t turn = 0;
  {
    const std::lock_guard lock(mutex_);
    turn = turn_;
    if (const auto at = real_.find(folder); at != real_.end()) {
      *real = at->second;
      return true;
    }
  }
  if (!resolve(parent_of(folder), real) || !walk(real, {last_of(folder)}, folder, kMoves)) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (turn == turn_) real_[folder] = *real;  // unless something moved meanwhile
  return true;
}

bool StageWatch::add(const std::string& folder) {
  uint64_t turn = 0;
  {
    const std::lock_guard lock(mutex_);
    if (done_.count(folder) != 0) return true;
    turn = turn_;
  }
  std::string real;
  const auto note = [&](Watched& watched) { watched.contents.insert(folder); };
  if (!resolve(folder, &real) || !watch(real, kContents, folder, note)) return false;
  const std::lock_guard lock(mutex_);
  if (turn == turn_) done_.insert(folder);
  return true;
}

bool StageWatch::add_file(const std::string& path) {
  std::string real;
  if (!resolve(parent_of(path), &real) || !walk(&real, {last_of(path)}, path, kMoves | kWrites)) {
    return false;
  }
  struct stat about {};
  if (lstat(real.c_str(), &about) != 0) return false;
  if (about.st_nlink < 2) return true;
  {
    const std::lock_guard lock(mutex_);
    if (files_ >= kMaxFileWatches) {
      errno = ENOSPC;
      return false;
    }
  }
  return watch(real, kWrites | kSelf, path, [&](Watched& watched) {
    if (watched.itself.empty()) ++files_;
    watched.itself.insert(path);
  });
}

// REQUIRES: mutex_.
void StageWatch::unwatch(const std::string& label) {
  const auto at = watches_of_.find(label);
  if (at == watches_of_.end()) return;
  for (const int number : at->second) {
    const auto found = watched_.find(number);
    if (found == watched_.end()) continue;
    Watched& watched = found->second;
    watched.contents.erase(label);
    if (watched.itself.erase(label) != 0 && watched.itself.empty()) --files_;
    for (auto name = watched.names.begin(); name != watched.names.end();) {
      name->second.erase(label);
      name = name->second.empty() ? watched.names.erase(name) : std::next(name);
    }
    if (watched.contents.empty() && watched.itself.empty() && watched.names.empty()) {
      inotify_rm_watch(fd_.get(), number);
      ++removals_;
      watched_.erase(found);
    }
  }
  watches_of_.erase(at);
}

// The path of `folder` may lead elsewhere now, and so may those below it. REQUIRES: mutex_.
void StageWatch::unwatch_below(const std::string& folder) {
  ++turn_;
  std::vector<std::string> below;
  for (auto at = real_.lower_bound(folder); at != real_.end(); ++at) {
    const std::string& name = at->first;
    if (name.compare(0, folder.size(), folder) != 0) break;
    if (name.size() == folder.size() || name[folder.size()] == '/') below.push_back(name);
  }
  for (const std::string& name : below) {
    unwatch(name);
    real_.erase(name);
    done_.erase(name);
  }
}

void StageWatch::remove_file(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!watches_of_.empty() && real_.count(path) == 0) unwatch(path);
}

// REQUIRES: mutex_.
void StageWatch::on_event(int number, uint32_t mask, const char* name,
                          std::vector<Change>* changes) {
  const auto at = watched_.find(number);
  if (at == watched_.end()) return;
  const Watched& watched = at->second;
  Labels moved;  // labels that may lead elsewhere now
  if (name != nullptr) {
    for (const std::string& folder : watched.contents) changes->push_back({folder + "/" + name});
    if (const auto found = watched.names.find(name); found != watched.names.end()) {
      moved = found->second;
    }
  } else {
    for (const std::string& file : watched.itself) changes->push_back({file});
    if ((mask & IN_ATTRIB) != 0) {
      moved = watched.contents;
    } else if ((mask & (kSelf | IN_UNMOUNT | IN_IGNORED)) != 0) {
      moved = watched.contents;
      for (const auto& [below, labels] : watched.names) moved.insert(labels.begin(), labels.end());
    }
  }
  for (const std::string& label : moved) changes->push_back({label});
  constexpr uint32_t kElsewhere = kMoved | kSelf | IN_UNMOUNT | IN_IGNORED;
  if ((mask & kElsewhere) != 0) {
    for (const std::string& label : moved) unwatch_below(label);
  }
  if ((mask & IN_IGNORED) == 0) return;
  const auto ended = watched_.find(number);
  if (ended == watched_.end()) return;
  if (!ended->second.itself.empty()) --files_;
  watched_.erase(ended);
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
      } else {
        on_event(event->wd, event->mask, event->len > 0 ? event->name : nullptr, changes);
      }
    }
  }
}

void StageWatch::mounted(const std::string& point, std::vector<Change>* changes) {
  const std::string prefix = point == "/" ? "" : point;
  const auto below = [&prefix](const std::string& path) {
    return path.compare(0, prefix.size(), prefix) == 0 &&
           (path.size() == prefix.size() || path[prefix.size()] == '/');
  };
  const std::lock_guard lock(mutex_);
  const size_t slash = point.rfind('/');
  const std::string folder = point.substr(0, slash), name = point.substr(slash);  // "/name"
  std::vector<std::string> labels;  // folders as jobs name them; may lead through links
  for (const auto& [label, real] : real_) {
    if (below(label) || below(real)) labels.push_back(label);
    // A mount point may also be a file.
    if (label == folder || real == folder) changes->push_back({label + name});
  }
  for (const std::string& label : labels) {
    changes->push_back({label});
    unwatch_below(label);
  }
}

}  // namespace sluice::optimizer
