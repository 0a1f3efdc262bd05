// Carries out what StagePlan decides, maintains the index that jobs read, and drops copies whose
// originals changed. Core thread only; copying runs on threads of its own.
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
#include "policy/copies/stage_plan.h"

namespace sluice::optimizer {

class StageKeeper {
 public:
  StageKeeper(StagePlan* plan, FileTable* files, std::shared_ptr<Mailbox> mailbox);
  StageKeeper(const StageKeeper&) = delete;
  StageKeeper& operator=(const StageKeeper&) = delete;
  // Removes all copies. Does not wait for a thread that hangs in a file system.
  ~StageKeeper();

  // Creates the stage if there is none. False: it cannot be created, *reason is one line.
  bool open(const std::string& fallback, std::string* reason);
  bool exists() const { return index_.exists(); }
  int index_fd() const { return index_.fd(); }
  int watch_fd() const { return watch_ == nullptr ? -1 : watch_->fd(); }
  int mounts_fd() const { return mounts_ == nullptr ? -1 : mounts_->fd(); }
  const std::string& folder() const { return folder_->path(); }

  // From now on copies are packed in `folder`, in at most `bytes`, and later fetched from there.
  // The first call decides. If the folder cannot be used, one warning gives the reason and the call
  // has no effect.
  void use_packs(const std::string& folder, uint64_t bytes);
  // No session is left: copies to be packed are written, and the folder is released until the next
  // use_packs().
  void rest();
  // The present or last state of the packs; nullopt: none were requested.
  std::optional<PackStore::View> packs() const;

  // From now on also stages files of local mounts.
  void stage_any_mount() {
    if (!rules_.any_mount) files_->forgive_folders();
    rules_.any_mount = true;
  }
  // Removes evicted copies, then starts the planned fetches; empties `fetches`.
  void carry_out(std::vector<PlannedFetch>* fetches);
  // Removes the copies that the plan has evicted.
  void remove_evicted();
  // Drops copies of files that have changed on this host until now.
  void see_changes();
  // Drops all copies of a file, under any path; no effect if it has none.
  void drop(uint64_t device, uint64_t inode);
  // Until the session has ended, no copy of the file is made, and one in flight is discarded: the
  // session may write to the file unnoticed. Files beyond kMostRefused per session are ignored.
  void refuse(uint32_t session, uint64_t device, uint64_t inode);
  void end_session(uint32_t session);
  // Drop copies of files that a mount now hides or an unmount uncovered. see_mounts() first asks
  // the kernel whether mounts changed.
  void mounts_changed();
  void see_mounts();
  // Renews the index's heartbeat, and limits the stage to `budget` and the room in its file system.
  void tick(uint64_t now_ns, uint64_t budget);

  // A copy is complete: the session that it was fetched for, and its bytes.
  std::function<void(uint32_t session, uint64_t bytes, bool packed)> on_staged;

  struct View {
    uint64_t copies = 0, fetched_files = 0, fetched_bytes = 0, checks = 0, failures = 0, drops = 0;
    uint64_t packed_files = 0, packed_bytes = 0;  // of the fetched ones, those read from packs
    std::string last_failure;
  };
  const View& view() const { return view_; }

 private:
  struct Copy {
    uint32_t record = 0;
    uint64_t name = 0;  // 0: not copied yet
    uint64_t device = 0, inode = 0;
    bool watched = false;  // the file itself, not only its folder
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
  uint64_t to_pack_ = 0;                         // bytes of copies queued for packing or in it
  std::unordered_map<uint32_t, Copy> copies_;    // by file
  using Inode = std::pair<uint64_t, uint64_t>;   // device and number
  std::multimap<Inode, uint32_t> by_inode_;      // to file
  std::map<uint32_t, std::set<Inode>> refused_;  // by session
  std::set<uint64_t> keeps_cache_;               // devices whose page cache survives an open
  View view_;
  bool said_full_ = false, said_unwatched_ = false;
  bool asked_for_packs_ = false, resting_ = false;
  std::optional<PackStore::View> packs_before_;
};

}  // namespace sluice::optimizer
