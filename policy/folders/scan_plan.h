// Which folders are listed ahead of jobs that walk through a tree on slow storage, so that names,
// attributes and, where the file system caches them, listings are in the kernel when the job comes.
//
// A job reports a folder whose listing took long. Two subfolders of the same folder show a walk:
// the next ones are listed ahead, in the order in which that folder lists them or in the order of
// their names, whichever the job follows. As with read-ahead the number doubles with each folder
// that was not listed in time; a job that comes to subfolders in no order walks through nothing, as
// Python's imports. Where a job also descends into the subfolders, they are listed with
// all that is in them. Where folders that were listed ahead take nearly as long as others, the
// mount retains no listings, and nothing is listed ahead on it. Reports that lead to nothing are in
// vain: after some of these a session had better not report. No I/O, no clock; bounded by kMost*
// below.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/util/ids.h"

namespace sluice::policy {

// A folder, as stat() identifies it.
struct FolderKey {
  uint64_t device = 0, inode = 0;
  auto operator<=>(const FolderKey&) const = default;
};

struct Subfolder {
  std::string name;
  uint64_t inode = 0;
};

class ScanPlan {
 public:
  // To be listed: `path` is relative to the folder `base`; empty: `base` itself.
  struct Task {
    FolderKey base;
    std::string path;
    uint32_t subfolder = 0;  // of `base`, that `path` begins with
    uint64_t inode = 0;      // of the folder to be listed
  };

  static constexpr size_t kMostScans = 64;
  // Of one folder; where there are more, none is listed ahead.
  static constexpr size_t kMostSubfolders = 1 << 17;
  static constexpr size_t kMostTasks = 1 << 14;                    // that wait, of a device
  static constexpr uint32_t kFirstWindow = 4, kMostWindow = 1024;  // subfolders
  // Listed since the last report: about 100 MB of the kernel's memory.
  static constexpr uint64_t kMostEntries = 100'000;
  static constexpr unsigned kEnough = 4;     // folders listed ahead, to judge a mount by
  static constexpr unsigned kMostVain = 32;  // reports, and what follows of them is refused

  // The session's job has listed `folder`, which lies in `parent`, and that took so long.
  void opened(SessionId session, FolderKey folder, FolderKey parent, uint64_t took_ns,
              uint64_t now_ns);
  // What the task's folder contains: its subfolders in the order in which it lists them, and how
  // many entries in all. Nothing, if it could not be listed.
  void listed(const Task& task, std::vector<Subfolder> subfolders, uint64_t entries,
              uint64_t now_ns);
  // The next folder to list, of a device for which `may` is true; false: none now. Each task is
  // given out once.
  using May = std::function<bool(uint64_t device)>;
  bool next(
      Task* task, const May& may = [](uint64_t) { return true; });

  // Whether another report of the session may be of use. False: it is forgiven half of its vain
  // ones.
  bool wants_reports(SessionId session);

  void remove_session(SessionId session);
  // Whether tasks may still name this folder as their base.
  bool scans(FolderKey folder) const { return scans_.contains(folder); }
  // Whose jobs walk through it; none if it is not scanned.
  std::set<SessionId> sessions(FolderKey folder) const;

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  struct Scan {
    std::set<SessionId> sessions;
    uint64_t first = 0;  // the inode of the subfolder that was opened first
    uint64_t waits = 0;  // that was opened while the folder's names were not known
    bool asked = false;  // its names were
    bool by_name = false;
    bool deep = false;  // the job lists what is in the subfolders, too
    uint32_t window = 0;
    unsigned steps = 0, strays = 0;  // reports of the next folders in order, and of others
    std::vector<Subfolder> subfolders;
    std::unordered_map<uint64_t, uint32_t> by_inode;  // to the subfolder's number
    std::vector<uint32_t> names, ranks;               // numbers by name; the reverse of that
    std::vector<bool> given;                          // to be listed, by number
    std::vector<uint64_t> done_ns;                    // when it was listed, by number; or kNever
    uint32_t last = 0;                                // the subfolder opened last
    uint64_t age = 0;
  };
  // Below a folder that was listed ahead: which subfolder of which base.
  struct Below {
    FolderKey base;
    uint32_t subfolder = 0;
    uint64_t done_ns = kNever;  // when it was listed
  };

  // How long folders took that were listed ahead, and others; ns. Those that were not reported took
  // no time.
  struct Mount {
    uint64_t ahead_ns = 0, alone_ns = 0;
    unsigned ahead = 0, alone = 0, unreported = 0;
    bool retains_nothing() const;
  };

  bool take(SessionId session, FolderKey folder, FolderKey parent, uint64_t began_ns);
  Scan& scan_of(FolderKey folder);
  void mark_done(Scan& scan, const Task& task, uint64_t now_ns);
  unsigned passed(const Scan& scan, uint32_t subfolder) const;
  void take_names(Scan& scan, std::vector<Subfolder> subfolders);
  static bool is_walk(Scan& scan, uint32_t subfolder);
  void advance(FolderKey base, Scan& scan, uint32_t subfolder, bool in_time);
  void mark_deep(FolderKey folder);
  size_t waiting(uint64_t device) const;
  void descend(const Task& task, const std::vector<Subfolder>& subfolders);
  void remove(std::map<FolderKey, Scan>::iterator at);

  std::map<FolderKey, Scan> scans_;
  std::map<FolderKey, Below> below_;
  std::map<SessionId, unsigned> vain_;          // reports
  std::map<uint64_t, Mount> mounts_;            // by device
  std::map<uint64_t, std::deque<Task>> tasks_;  // by device; none is empty
  uint64_t entries_ = 0;                        // listed since the last report
  uint64_t clock_ = 0;                          // reports
};

}  // namespace sluice::policy
