// Files that sessions follow: one entry per (device, inode), shared by all its sessions. Opening
// and closing run on the executor; results come back through the mailbox. Core thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "optimizer/io/reopen.h"
#include "optimizer/loop/base.h"
#include "optimizer/sessions/plans.h"
#include "policy/util/ids.h"
#include "protocol/control.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct FileEntry {
  enum class State { kOpening, kReady, kOff, kClosing };
  policy::FileId id{};
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0;  // since 1970, when it was opened; REQUIRES: kReady
  std::string path;         // display
  std::string why;          // kOff: one line
  State state = State::kOpening;
  UniqueFd fd;
  std::shared_ptr<const FileResidency> residency;  // of fd; null: not opened yet
  std::set<policy::SessionId> sessions;
  uint64_t since_ns = 0;   // when opening began; 0: a hang was reported already
  uint64_t in_flight = 0;  // reads and calls that still use fd
};

struct MountEntry {
  MountFacts facts;
  bool known = false;
  bool off = false;
  bool open_tested = false;  // whether an open empties its cache is known, or being tested
  unsigned bad_fills = 0;    // reads in a row after which less than half was found cached
};

class Files : public policy::Residency {
 public:
  // Both outlive this. `plans` is not used before the first file, so this may be its residency.
  Files(Base* base, Plans* plans) : base_(base), plans_(plans) {}
  // Descriptors that a read or a call still uses stay open until the process ends.
  ~Files() override;

  uint64_t cached(policy::FileId file, policy::Range range) override;
  bool known(policy::FileId file) const override;
  bool exact(policy::FileId file) const override;
  bool awaited(policy::FileId file) const override;

  // Adds `session` to the file's users, opening it through `passed` if it is new. Never blocks.
  FileEntry& use(policy::SessionId session, const protocol::File& file, const std::string& path,
                 UniqueFd passed, uint64_t now_ns);
  // Makes `session` a user of a file that others use already.
  void share(FileEntry& file, policy::SessionId session) {
    file.sessions.insert(session);
    plans_->scheduler.retention().use_file(file.id, session);
  }
  // `session` no longer uses any file. Calls `cancel` for each read that no session needs any more.
  void leave(policy::SessionId session, const std::function<void(uint64_t token)>& cancel);

  FileEntry* find(policy::FileId id);
  const std::map<policy::FileId, FileEntry>& all() const { return files_; }
  const std::map<uint64_t, MountEntry>& mounts() const { return mounts_; }

  void read_started(policy::FileId id);
  void read_ended(policy::FileId id);  // once fd is no longer used by it
  // Checks how much of what a read fetched is in the page cache.
  void verify(policy::FileId id, policy::Range range);
  // Warns, once per file, that opening it takes too long.
  void warn_of_hung_opens(uint64_t now_ns, uint64_t limit_ns);
  void turn_mount_off(uint64_t device, const std::string& why);

  // Files that still have to be closed.
  size_t closing() const { return closing_; }
  // Called on the core thread whenever closing() falls to 0.
  std::function<void()> on_all_closed;
  // A file can be read now.
  std::function<void(const FileEntry&)> on_ready;
  // A file will not be prefetched, or its open hangs: counted for the sessions that use it.
  std::function<void(const FileEntry&)> on_refused;

 private:
  void opened(policy::FileId id, Reopened result);
  void read_header(const FileEntry& file);
  void turn_off(FileEntry& file, const std::string& why);
  void close_if_idle(FileEntry& file);
  void test_open(FileEntry& file, policy::Range range);

  Base* const base_;
  Plans* const plans_;
  uint32_t next_id_ = 1;
  size_t closing_ = 0;
  std::map<policy::FileId, FileEntry> files_;
  std::map<std::pair<uint64_t, uint64_t>, policy::FileId> by_inode_;
  std::map<uint64_t, MountEntry> mounts_;
};

}  // namespace sluice::optimizer
