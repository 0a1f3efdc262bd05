#include "policy/folders/scan_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::policy {

namespace {

constexpr size_t kMostBelow = 1 << 17;  // folders known to lie below a scanned one
constexpr size_t kMostMounts = 64;
constexpr size_t kNear = 8;  // subfolders that a walk may leave out
constexpr unsigned kMostStrays = 2;
constexpr uint64_t kMessageNs = 1'000'000;  // a report may arrive so late
constexpr uint64_t kHelped = 4;             // what is listed ahead takes a quarter less at least

}  // namespace

bool ScanPlan::Mount::retains_nothing() const {
  if (ahead < kEnough || alone == 0 || ahead <= unreported) return false;
  return ahead_ns / ahead * kHelped > alone_ns / alone * (kHelped - 1);
}

void ScanPlan::opened(SessionId session, FolderKey folder, FolderKey parent, uint64_t took_ns,
                      uint64_t now_ns) {
  entries_ = 0;
  if (mounts_.size() >= kMostMounts && !mounts_.contains(folder.device)) mounts_.clear();
  Mount& mount = mounts_[folder.device];
  unsigned& vain = vain_[session];
  if (mount.retains_nothing()) {
    vain = kMostVain;
    return;
  }
  const size_t before = waiting(parent.device);
  const uint64_t began_ns = now_ns - std::min(now_ns, took_ns + kMessageNs);
  const bool alone = take(session, folder, parent, began_ns);
  ++(alone ? mount.alone : mount.ahead);
  (alone ? mount.alone_ns : mount.ahead_ns) += took_ns;
  if (mount.retains_nothing()) tasks_.erase(folder.device);
  vain = waiting(parent.device) > before ? vain - std::min(vain, 2U) : vain + 1;
}

// False: the folder was listed ahead already.
bool ScanPlan::take(SessionId session, FolderKey folder, FolderKey parent, uint64_t began_ns) {
  if (const auto below = below_.find(folder); below != below_.end()) {
    const auto at = scans_.find(below->second.base);
    if (at == scans_.end()) return true;
    at->second.sessions.insert(session);
    const bool done = below->second.done_ns < began_ns;
    advance(at->first, at->second, below->second.subfolder, done);
    return !done;
  }
  Scan& scan = scan_of(parent);
  scan.sessions.insert(session);
  scan.age = ++clock_;
  if (scan.first == 0) scan.first = folder.inode;
  if (scan.first == folder.inode) return true;
  if (!scan.asked) {
    scan.asked = true;
    scan.waits = folder.inode;
    tasks_[parent.device].push_front({parent, "", 0, parent.inode});
    mark_deep(parent);
  } else if (const auto at = scan.by_inode.find(folder.inode); at != scan.by_inode.end()) {
    const bool done = scan.done_ns[at->second] < began_ns;
    mounts_[parent.device].unreported += passed(scan, at->second);
    advance(parent, scan, at->second, done);
    return !done;
  } else if (scan.subfolders.empty()) {
    scan.waits = folder.inode;
  }
  return true;
}

bool ScanPlan::wants_reports(SessionId session) {
  const auto at = vain_.find(session);
  if (at == vain_.end() || at->second < kMostVain) return true;
  at->second /= 2;
  return false;
}

ScanPlan::Scan& ScanPlan::scan_of(FolderKey folder) {
  const auto known = scans_.find(folder);
  if (known != scans_.end()) return known->second;
  if (scans_.size() >= kMostScans) {
    remove(std::min_element(scans_.begin(), scans_.end(), [](const auto& one, const auto& other) {
      return one.second.age < other.second.age;
    }));
  }
  return scans_[folder];
}

// The folder's subfolders are listed, too: so are those of its neighbours.
void ScanPlan::mark_deep(FolderKey folder) {
  for (auto& [base, scan] : scans_) {
    if (base.device == folder.device && scan.by_inode.contains(folder.inode)) scan.deep = true;
  }
}

void ScanPlan::listed(const Task& task, std::vector<Subfolder> subfolders, uint64_t entries,
                      uint64_t now_ns) {
  const auto at = scans_.find(task.base);
  if (at == scans_.end()) return;
  if (!task.path.empty()) {
    entries_ += entries;
    mark_done(at->second, task, now_ns);
    if (at->second.deep) descend(task, subfolders);
    return;
  }
  Scan& scan = at->second;
  if (subfolders.size() > kMostSubfolders) return;
  take_names(scan, std::move(subfolders));
  // Folders within this one that jobs walk through already.
  for (const auto& [base, other] : scans_) {
    if (other.asked && base.device == task.base.device)
      scan.deep |= scan.by_inode.contains(base.inode);
  }
  const auto first = scan.by_inode.find(scan.first);
  const auto waits = scan.by_inode.find(scan.waits);
  if (first != scan.by_inode.end()) {
    scan.last = first->second;
    scan.given[scan.last] = true;
  }
  if (waits != scan.by_inode.end()) advance(task.base, scan, waits->second, false);
}

// How many folders that were listed ahead the job has passed on its way from the last to this one.
unsigned ScanPlan::passed(const Scan& scan, uint32_t subfolder) const {
  const size_t from = scan.by_name ? scan.ranks[scan.last] : scan.last;
  const size_t to = scan.by_name ? scan.ranks[subfolder] : subfolder;
  unsigned count = 0;
  for (size_t at = from + 1; at < to && at <= from + kMostWindow; ++at) {
    count += scan.done_ns[scan.by_name ? scan.names[at] : at] != kNever ? 1 : 0;
  }
  return count;
}

void ScanPlan::mark_done(Scan& scan, const Task& task, uint64_t now_ns) {
  const auto below = below_.find({task.base.device, task.inode});
  if (below != below_.end()) {
    below->second.done_ns = now_ns;
  } else if (task.subfolder < scan.done_ns.size()) {
    scan.done_ns[task.subfolder] = now_ns;
  }
}

void ScanPlan::take_names(Scan& scan, std::vector<Subfolder> subfolders) {
  scan.subfolders = std::move(subfolders);
  const size_t count = scan.subfolders.size();
  scan.names.resize(count);
  std::iota(scan.names.begin(), scan.names.end(), 0U);
  std::sort(scan.names.begin(), scan.names.end(), [&](uint32_t one, uint32_t other) {
    return scan.subfolders[one].name < scan.subfolders[other].name;
  });
  scan.ranks.resize(count);
  scan.given.assign(count, false);
  scan.done_ns.assign(count, kNever);
  scan.by_inode.clear();
  for (uint32_t rank = 0; rank < count; ++rank) {
    scan.ranks[scan.names[rank]] = rank;
    scan.by_inode.emplace(scan.subfolders[rank].inode, rank);
  }
}

// Whether the job comes to the subfolders in their order, counting this one.
bool ScanPlan::is_walk(Scan& scan, uint32_t subfolder) {
  const size_t from = scan.by_name ? scan.ranks[scan.last] : scan.last;
  const size_t to = scan.by_name ? scan.ranks[subfolder] : subfolder;
  const bool next = to > from && to - from <= kNear + 2 * static_cast<size_t>(scan.window);
  ++(next || subfolder == scan.last ? scan.steps : scan.strays);
  return scan.strays <= kMostStrays || scan.strays < scan.steps / 2;
}

// The job has come to this subfolder: those after it are listed, more if it was not `in_time`.
void ScanPlan::advance(FolderKey base, Scan& scan, uint32_t subfolder, bool in_time) {
  scan.age = ++clock_;
  if (scan.subfolders.empty()) return;
  if (subfolder != scan.last) {
    if (subfolder == scan.last + 1) {
      scan.by_name = scan.by_name && scan.ranks[subfolder] == scan.ranks[scan.last] + 1;
    } else if (scan.ranks[subfolder] == scan.ranks[scan.last] + 1) {
      scan.by_name = true;
    }
  }
  const bool walks = is_walk(scan, subfolder);
  scan.last = subfolder;
  scan.given[subfolder] = true;
  if (!walks) {
    scan.deep = false;
    return;
  }
  if (!in_time) scan.window = std::clamp(2 * scan.window, kFirstWindow, kMostWindow);
  const size_t from = scan.by_name ? scan.ranks[subfolder] : subfolder;
  const size_t end = std::min<size_t>(from + 1 + scan.window, scan.subfolders.size());
  for (size_t at = from + 1; at < end && waiting(base.device) < kMostTasks; ++at) {
    const uint32_t number = scan.by_name ? scan.names[at] : static_cast<uint32_t>(at);
    if (scan.given[number]) continue;
    scan.given[number] = true;
    tasks_[base.device].push_back(
        {base, scan.subfolders[number].name, number, scan.subfolders[number].inode});
  }
}

// What is in a folder that was listed ahead comes next, before its neighbours.
void ScanPlan::descend(const Task& task, const std::vector<Subfolder>& subfolders) {
  for (auto at = subfolders.rbegin(); at != subfolders.rend(); ++at) {
    if (waiting(task.base.device) >= kMostTasks) return;
    if (below_.size() < kMostBelow) {
      below_[{task.base.device, at->inode}] = {task.base, task.subfolder, kNever};
    }
    tasks_[task.base.device].push_front(
        {task.base, task.path + "/" + at->name, task.subfolder, at->inode});
  }
}

bool ScanPlan::next(Task* task, const May& may) {
  if (entries_ >= kMostEntries) return false;
  const auto at = std::find_if(tasks_.begin(), tasks_.end(),
                               [&may](const auto& entry) { return may(entry.first); });
  if (at == tasks_.end()) return false;
  *task = std::move(at->second.front());
  at->second.pop_front();
  if (at->second.empty()) tasks_.erase(at);
  return true;
}

size_t ScanPlan::waiting(uint64_t device) const {
  const auto at = tasks_.find(device);
  return at == tasks_.end() ? 0 : at->second.size();
}

std::set<SessionId> ScanPlan::sessions(FolderKey folder) const {
  const auto at = scans_.find(folder);
  return at != scans_.end() ? at->second.sessions : std::set<SessionId>();
}

void ScanPlan::remove_session(SessionId session) {
  vain_.erase(session);
  for (auto at = scans_.begin(); at != scans_.end();) {
    const auto one = at++;
    one->second.sessions.erase(session);
    if (one->second.sessions.empty()) remove(one);
  }
}

void ScanPlan::remove(std::map<FolderKey, Scan>::iterator at) {
  const FolderKey base = at->first;
  scans_.erase(at);
  if (const auto tasks = tasks_.find(base.device); tasks != tasks_.end()) {
    std::erase_if(tasks->second, [&](const Task& task) { return task.base == base; });
    if (tasks->second.empty()) tasks_.erase(tasks);
  }
  std::erase_if(below_, [&](const auto& one) { return one.second.base == base; });
}

}  // namespace sluice::policy
