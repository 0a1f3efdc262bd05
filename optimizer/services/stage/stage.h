// The stage: carries out what StagePlan decides, maintains the index that jobs read, and drops
// copies whose originals changed. Core thread only; copying runs on threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "optimizer/io/executor.h"
#include "optimizer/io/opened_file.h"
#include "optimizer/loop/base.h"
#include "optimizer/services/stage/copy_chunks.h"
#include "optimizer/services/stage/copy_log.h"
#include "optimizer/services/stage/copy_packer.h"
#include "optimizer/services/stage/make_copy.h"
#include "optimizer/services/stage/refused_files.h"
#include "optimizer/sessions/plans.h"
#include "optimizer/stage/mount_watch.h"
#include "optimizer/stage/stage_copy.h"
#include "optimizer/stage/stage_folder.h"
#include "optimizer/stage/stage_index.h"
#include "optimizer/stage/stage_watch.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Stage {
 public:
  // Both outlive this.
  Stage(Base* base, Plans* plans);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  // Removes all copies. Does not wait for a thread that hangs in a file system.
  ~Stage();

  // Creates the stage if there is none. False: it cannot be created, *reason is one line.
  bool open(const std::string& fallback, std::string* reason);
  bool exists() const { return index_.exists(); }
  int index_fd() const { return index_.fd(); }
  const std::string& folder() const { return folder_->path(); }

  // What copies are written to and fetched from on a fast disk, once one of them is used.
  struct Disk {
    CopyPacker packer;
    CopyLog log;
    CopyChunks chunks;
    std::shared_ptr<DiskReads> reads = std::make_shared<DiskReads>();
    uint64_t lane = 0;  // counts disks that hung when their sessions ended
    // Fetching copies of the dataset pays later than it costs, or otherwise than by their reads.
    bool invests(policy::DatasetId dataset) const {
      return log.follows(dataset) || chunks.supplies(dataset);
    }
  };
  Disk& disk() { return disk_; }
  const Disk& disk() const { return disk_; }
  void release_disk();  // no session is left
  // No copy of such a file is made, and one in flight is discarded.
  RefusedFiles& refused() { return refused_; }

  // From now on also stages files of local mounts.
  void stage_any_mount() {
    if (!mounts_seen_.any) plans_->sample_files.accept_folders();
    mounts_seen_.any = true;
  }
  // Removes evicted copies, then starts the planned fetches; empties `fetches`.
  void carry_out(std::vector<policy::PlannedFetch>* fetches);
  // Removes the copies that the plan has evicted.
  void remove_evicted();
  // A sample of these parts was read: what is in the page cache of an original that has no copy is
  // written to the log.
  void log_read(policy::DatasetId dataset, std::span<const policy::Extent> parts);
  // Drops copies of files that have changed on this host until now.
  void see_changes();
  // Drops all copies of a file, under any path; no effect if it has none.
  void drop(uint64_t device, uint64_t inode);
  // Drops copies of files that a mount now hides or an unmount uncovered.
  void see_mounts();
  // Renews the index's heartbeat, and limits the stage to `budget` and the room in its file system.
  void tick(uint64_t now_ns, uint64_t budget);

  // Files that are read into the page cache are opened for that: where they are `wanted` they are
  // handed to `opened` afterwards, which closes them.
  struct {
    // How often the file is to be opened.
    std::function<unsigned(policy::SessionId, policy::SampleFileId)> wanted;
    std::function<void(policy::SessionId, const std::string& path, OpenedFile)> opened;
  } opened_ahead;

  struct View {
    uint64_t copies = 0, fetched_files = 0, fetched_bytes = 0, checks = 0, failures = 0, drops = 0;
    uint64_t packed_files = 0, packed_bytes = 0;    // of the fetched ones, those read from packs
    uint64_t logged_files = 0, logged_bytes = 0;    // likewise from the log
    uint64_t chunked_files = 0, chunked_bytes = 0;  // likewise from chunks that were read whole
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

  CopyRules rules() const;
  uint64_t lane_of(uint64_t device) const;
  void write_to_log(policy::SampleFileId file, const Copy& copy, bool leaves);
  bool announce(const policy::PlannedFetch& planned);
  CopyJob job_of(const policy::PlannedFetch& planned);
  void fetch(std::span<const policy::PlannedFetch> together);
  void made(const policy::PlannedFetch& planned, const std::string& path, uint64_t name,
            CopyDone done);
  void fetch_to_cache(const policy::PlannedFetch& fetch);
  void check(const policy::PlannedFetch& fetch);
  void fetched(const policy::PlannedFetch& fetch, uint64_t name, uint64_t begun_ns,
               CopyResult result);
  void checked(const policy::PlannedFetch& fetch, uint64_t begun_ns, const CopyResult& result);
  void failed(const policy::PlannedFetch& fetch, const CopyResult& result);
  void give_up(policy::SampleFileId file);
  void abandon_late(uint64_t before_ns);
  void remove(policy::SampleFileId file);
  void drop_below(const std::string& path);
  void mounts_changed();
  void drop_changed(const std::vector<StageWatch::Change>& changes);

  Base* const base_;
  Plans* const plans_;
  std::shared_ptr<StageFolder> folder_;
  std::shared_ptr<StageWatch> watch_;
  std::unique_ptr<MountWatch> mounts_;
  StageIndex index_;
  Executor executor_;
  Disk disk_;
  uint64_t next_name_ = 1;
  struct {
    std::unordered_map<policy::SampleFileId, Copy> by_file;
    std::multimap<std::pair<uint64_t, uint64_t>, policy::SampleFileId>
        by_inode;  // of device and inode
  } copies_;
  RefusedFiles refused_;
  struct {
    bool any = false;                   // also files of local mounts are staged
    std::set<uint64_t> cache_survives;  // devices whose page cache survives an open
  } mounts_seen_;
  View view_;
  struct {
    bool full = false, unwatched = false;
  } warned_;
};

}  // namespace sluice::optimizer
