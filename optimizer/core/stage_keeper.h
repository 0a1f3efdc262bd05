// The stage at work: carries out what StagePlan decides, keeps the index that jobs read, and drops
// copies whose originals changed. Core thread only; copying runs on threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "optimizer/stage/mount_watch.h"
#include "optimizer/stage/stage_copy.h"
#include "optimizer/stage/stage_folder.h"
#include "optimizer/stage/stage_index.h"
#include "optimizer/stage/stage_watch.h"
#include "policy/planner/stage_plan.h"

namespace sluice::optimizer {

class StageKeeper {
 public:
  StageKeeper(StagePlan* plan, FileTable* files, std::shared_ptr<Mailbox> mailbox);
  StageKeeper(const StageKeeper&) = delete;
  StageKeeper& operator=(const StageKeeper&) = delete;
  // The copies go. A thread that hangs in a file system does not hold this up.
  ~StageKeeper();

  // Makes the stage if there is none. False: there is none, *reason is one line.
  bool open(const std::string& fallback, std::string* reason);
  bool exists() const { return index_.exists(); }
  int index_fd() const { return index_.fd(); }
  int watch_fd() const { return watch_ == nullptr ? -1 : watch_->fd(); }
  int mounts_fd() const { return mounts_ == nullptr ? -1 : mounts_->fd(); }
  const std::string& folder() const { return folder_->path(); }

  // Copies are packed in `folder` from now on, and come from there again; `bytes` of it at most.
  // The first to ask for it decides. Without effect if that folder cannot be used: one line says
  // why.
  void use_packs(const std::string& folder, uint64_t bytes);
  // Nobody reads any more: what is to be packed is written, and the folder is left until
  // use_packs().
  void rest();
  // As they are, or were last; none: nobody has asked for any.
  std::optional<PackStore::View> packs() const;

  // Also files of local mounts, from now on.
  void stage_any_mount() {
    if (!rules_.any_mount) files_->forgive_folders();
    rules_.any_mount = true;
  }
  // Starts what was planned (emptied), after what has to go is gone.
  void carry_out(std::vector<PlannedFetch>* fetches);
  // Removes the copies that the plan gave up.
  void remove_evicted();
  // Drops copies of what changed on this host until now.
  void see_changes();
  // Drops all copies of a file, whatever they are named; without effect if it has none.
  void drop(uint64_t device, uint64_t inode);
  // No copy of the file is made from now on, and what is being copied is refused, until the session
  // has ended: it may write to it unseen. More than kMostRefused of a session are forgotten.
  void refuse(uint32_t session, uint64_t device, uint64_t inode);
  void end_session(uint32_t session);
  // Drops copies of what was mounted over, or uncovered: looks; only if the kernel says so.
  void mounts_changed();
  void see_mounts();
  // Keeps the index alive, and the budget within `budget` and what the memory file system has.
  void tick(uint64_t now_ns, uint64_t budget);

  // A copy is there: of whom it was wanted, and its bytes.
  std::function<void(uint32_t session, uint64_t bytes, bool packed)> on_staged;

  struct View {
    uint64_t copies = 0, fetched_files = 0, fetched_bytes = 0, checks = 0, failures = 0, drops = 0;
    uint64_t packed_files = 0, packed_bytes = 0;  // of those that were fetched, out of packs
    std::string last_failure;
  };
  const View& view() const { return view_; }

 private:
  struct Copy {
    uint32_t record = 0;
    uint64_t name = 0;  // 0: not there yet
    uint64_t device = 0, inode = 0;
    bool watched = false;  // itself, not only its folder
  };

  void fetch(const PlannedFetch& fetch);
  void fetch_to_cache(const PlannedFetch& fetch);
  void pack(const std::string& path, std::shared_ptr<CopyToPack> copy);
  void check(const PlannedFetch& fetch);
  void fetched(const PlannedFetch& fetch, uint64_t name, uint64_t begun_ns, CopyResult result);
  void checked(const PlannedFetch& fetch, uint64_t begun_ns, const CopyResult& result);
  void failed(const PlannedFetch& fetch, const CopyResult& result);
  void forget(uint32_t file);
  bool is_refused(uint64_t device, uint64_t inode) const;
  void drop_below(const std::string& path);
  void drop_changed(const std::vector<StageWatch::Change>& changes);

  StagePlan* const plan_;
  FileTable* const files_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<StageFolder> folder_;
  std::shared_ptr<StageWatch> watch_;
  std::unique_ptr<MountWatch> mounts_;
  StageIndex index_;
  Executor executor_, packing_;
  CopyRules rules_;
  uint64_t next_name_ = 1;
  uint64_t to_pack_ = 0;                         // bytes of copies that wait for it, or are at it
  std::unordered_map<uint32_t, Copy> copies_;    // by file
  using Inode = std::pair<uint64_t, uint64_t>;   // device and number
  std::multimap<Inode, uint32_t> by_inode_;      // to file
  std::map<uint32_t, std::set<Inode>> refused_;  // by session
  std::set<uint64_t> keeps_cache_;               // devices that do when a file is opened
  View view_;
  bool said_full_ = false, said_unwatched_ = false;
  bool asked_for_packs_ = false, resting_ = false;
  std::optional<PackStore::View> packs_before_;
};

}  // namespace sluice::optimizer
