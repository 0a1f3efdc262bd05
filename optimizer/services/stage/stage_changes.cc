// What becomes of copies whose originals change, are moved, or are hidden by a mount.
#include <poll.h>

#include "optimizer/services/stage/stage.h"

namespace sluice::optimizer {

using policy::FileTable;
using policy::SampleFileId;

// A renamed or moved folder changes the paths of all files below it.
void Stage::drop_below(const std::string& path) {
  std::vector<SampleFileId> below;
  for (const auto& [file, copy] : copies_.by_file) {
    const std::string& folder = plans_->sample_files.folder_path(plans_->sample_files.folder(file));
    if (folder.compare(0, path.size(), path) != 0) continue;
    if (folder.size() == path.size() || folder[path.size()] == '/') below.push_back(file);
  }
  for (const SampleFileId file : below) plans_->stage.drop(file);
  view_.drops += below.size();
}

void Stage::see_changes() {
  if (watch_ == nullptr) return;
  // Also without copies: events queued now must not count as changes of later copies.
  index_.draining_begins();
  std::vector<StageWatch::Change> changes;
  bool lost = false;
  watch_->read(&changes, &lost);
  if (lost) {
    plans_->stage.drop_all();
    disk_.log.drop_all();
    disk_.chunks.doubt_all();
  }
  drop_changed(changes);
  if (lost || !changes.empty()) remove_evicted();
  index_.draining_ends();
}

void Stage::drop(uint64_t device, uint64_t inode) {
  const auto [begin, end] = copies_.by_inode.equal_range({device, inode});
  std::vector<SampleFileId> same;
  for (auto at = begin; at != end; ++at) same.push_back(at->second);
  for (const SampleFileId file : same) plans_->stage.drop(file);
  view_.drops += same.size();
  remove_evicted();
}

void Stage::see_mounts() {
  if (mounts_ == nullptr) return;
  pollfd changed = {mounts_->fd(), POLLPRI, 0};
  if (poll(&changed, 1, 0) > 0) mounts_changed();
}

void Stage::mounts_changed() {
  std::vector<StageWatch::Change> changes;
  for (const std::string& point : mounts_->changed()) watch_->mounted(point, &changes);
  drop_changed(changes);
  if (!changes.empty()) remove_evicted();
}

void Stage::drop_changed(const std::vector<StageWatch::Change>& changes) {
  for (const StageWatch::Change& change : changes) {
    const SampleFileId file = plans_->sample_files.find(change.path);
    if (file != FileTable::kNone) {
      disk_.log.drop(file);
      disk_.chunks.doubt(change.path);
      if (copies_.by_file.count(file) == 0) continue;
      plans_->stage.drop(file);
      ++view_.drops;
    } else if (plans_->sample_files.has_folder_below(change.path)) {
      disk_.log.drop_all();
      disk_.chunks.doubt_all();
      drop_below(change.path);
    }
  }
}

}  // namespace sluice::optimizer
