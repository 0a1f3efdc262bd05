#include "optimizer/core/stage_keeper.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "protocol/stage_io.h"

namespace sluice::optimizer {
namespace {

// More threads than one mount may use: a mount that hangs leaves some to the others.
constexpr unsigned kThreads = CopyMounts::kMaxDepth + 32;
constexpr uint64_t kLargestShare = 4;  // a file is at most this part of the budget
constexpr unsigned kPackers = 2;
// Copies waiting to be packed: share of the budget, and bytes at most.
constexpr uint64_t kToPackShare = 4, kMostToPack = 64 << 20;
// Within a small limit packs are smaller: a pack that never fills is never written.
constexpr uint64_t kFewestPacks = 4;
constexpr size_t kMostRefused = 1 << 16;

}  // namespace

StageKeeper::StageKeeper(StagePlan* plan, FileTable* files, std::shared_ptr<Mailbox> mailbox)
    : plan_(plan),
      files_(files),
      mailbox_(std::move(mailbox)),
      executor_(kThreads, CopyMounts::kMaxDepth),
      packing_(kPackers, kPackers) {
  if (const unsigned removed = StageFolder::remove_leftovers(); removed > 0) {
    say(Level::kInfo, "removed what {} optimizers that were killed had staged", removed);
  }
}

StageKeeper::~StageKeeper() {
  index_.close();
  if (folder_ != nullptr) folder_->clear();
}

bool StageKeeper::open(const std::string& fallback, std::string* reason) {
  if (index_.exists()) return true;
  auto folder = std::make_shared<StageFolder>();
  auto watch = std::make_shared<StageWatch>();
  if (!folder->create(fallback, reason) || !index_.create(folder->path(), watch->fd(), reason)) {
    return false;
  }
  folder_ = std::move(folder);
  watch_ = std::move(watch);
  mounts_ = std::make_unique<MountWatch>();
  index_.beat(now_ns());
  say(Level::kInfo, "staging in {}", folder_->path());
  return true;
}

void StageKeeper::use_packs(const std::string& folder, uint64_t bytes) {
  resting_ = false;
  if (asked_for_packs_) return;
  asked_for_packs_ = true;
  // On the executor: opening reads the indices of all packs.
  packing_.run(0, [this, folder, bytes, mailbox = mailbox_] {
    auto packs = std::make_shared<PackStore>();
    PackStore::Settings settings;
    settings.base = folder;
    settings.most_bytes = bytes;
    settings.pack_bytes =
        std::clamp(bytes / kFewestPacks, protocol::kPackLeastBytes, settings.pack_bytes);
    settings.say = [](const std::string& line) { say(Level::kWarn, "{}", line); };
    std::string reason;
    const bool good = packs->open(settings, &reason);
    mailbox->post([this, good, packs, reason] {
      asked_for_packs_ = good;  // else the next job may ask again
      if (good) {
        rules_.packs = packs;
      } else {
        say(Level::kWarn, "no packs: {}", reason);
      }
    });
  });
}

// Also releases the folder to other optimizers: this one may never be used again.
void StageKeeper::rest() {
  if (rules_.packs == nullptr) return;
  resting_ = true;
  packing_.run(0, [this, packs = rules_.packs, mailbox = mailbox_]() mutable {
    packs->flush();
    packs.reset();
    mailbox->post([this] {
      if (!resting_ || rules_.packs == nullptr) return;
      packs_before_ = rules_.packs->view();
      rules_.packs.reset();
      asked_for_packs_ = false;
    });
  });
}

std::optional<PackStore::View> StageKeeper::packs() const {
  return rules_.packs != nullptr ? rules_.packs->view() : packs_before_;
}

void StageKeeper::carry_out(std::vector<PlannedFetch>* fetches) {
  remove_evicted();
  for (const PlannedFetch& planned : *fetches) {
    if (planned.check) {
      check(planned);
    } else if (planned.to_cache) {
      fetch_to_cache(planned);
    } else {
      fetch(planned);
    }
  }
  fetches->clear();
}

void StageKeeper::fetch(const PlannedFetch& planned) {
  const std::string path = files_->path(planned.file);
  const uint32_t record = index_.exists() ? index_.add(path) : StageIndex::kNone;
  if (record == StageIndex::kNone) {
    plan_->on_failed(planned, StagePlan::Failure::kError);
    return;
  }
  copies_[planned.file] = {record, 0, 0, 0, false};
  const std::string above = files_->folder_path(files_->folder(planned.file));
  CopyRules rules = rules_;
  rules.most_bytes = plan_->room().budget() / kLargestShare;
  executor_.run(0, [this, planned, path, above, rules, name = next_name_++, mailbox = mailbox_,
                    folder = folder_, watch = watch_] {
    // Watched before it is read, so that no change between the two is missed.
    bool watched = watch->add(above);
    const uint64_t begun = now_ns();
    auto to_pack = std::make_shared<CopyToPack>();
    CopyResult result = copy_in(path, folder->fd(), name, rules, to_pack.get());
    result.took_ns = now_ns() - begun;
    if (result.good && ((result.flags & protocol::kStageLink) != 0 || result.stat.links > 1)) {
      // The folder's watch misses changes under other names: watch the file too, then recheck it.
      watched = watch->add_file(path) && watched;
      if (!look_again(path, result.stat).good) {
        folder->remove(name);
        result = {};
      }
    }
    // A missing file needs no watch.
    const bool unseen = result.good && !watched;
    if (unseen) result.flags |= protocol::kStageUnwatched;
    if (!result.good) to_pack->fd.reset();
    mailbox->post(
        [this, planned, name, begun, unseen, path, to_pack, result = std::move(result)]() mutable {
          if (unseen && !said_unwatched_) {
            said_unwatched_ = true;
            say(Level::kWarn,
                "not all folders of the dataset can be watched (inotify): the original of a staged "
                "file "
                "is compared each time that the file is opened");
          }
          if (result.good && is_refused(result.stat.device, result.stat.inode)) {
            folder_->remove(name);
            result = {};
            result.why = path + ": mapped for writing";
            to_pack->fd.reset();
          }
          if (to_pack->fd) pack(path, std::move(to_pack));
          fetched(planned, name, begun, std::move(result));
        });
  });
}

void StageKeeper::fetch_to_cache(const PlannedFetch& planned) {
  CopyRules rules = rules_;
  rules.most_bytes = plan_->room().budget() / kLargestShare;
  executor_.run(0, [this, planned, path = files_->path(planned.file), rules, keep = keeps_cache_,
                    mailbox = mailbox_] {
    const uint64_t begun = now_ns();
    CopyResult result = read_ahead(path, rules, keep);
    result.took_ns = now_ns() - begun;
    mailbox->post([this, planned, result] {
      if (!result.good) {
        failed(planned, result);
        return;
      }
      if (result.stat.size > 0) keeps_cache_.insert(result.stat.device);
      const uint64_t read = result.cached ? 0 : result.stat.size;
      view_.fetched_files += read != 0 ? 1 : 0;
      view_.fetched_bytes += read;
      plan_->on_staged(planned, result.stat.device, result.stat.size, result.charged, now_ns(),
                       read != 0, result.took_ns);
      if (on_staged) on_staged(planned.session, read, false);
      remove_evicted();
    });
  });
}

// The job does not wait for packing. Queued copies stay in memory, so their bytes are limited: a
// slow disk gets fewer.
void StageKeeper::pack(const std::string& path, std::shared_ptr<CopyToPack> copy) {
  const uint64_t bytes = copy->bytes;
  const uint64_t most = std::min(plan_->room().budget() / kToPackShare, kMostToPack);
  if (rules_.packs == nullptr || (to_pack_ != 0 && to_pack_ + bytes > most)) return;
  to_pack_ += bytes;
  packing_.run(0, [this, path, copy = std::move(copy), bytes, packs = rules_.packs,
                   mailbox = mailbox_]() mutable {
    pack_copy(path, *copy, packs.get());
    copy.reset();
    mailbox->post([this, bytes] { to_pack_ -= bytes; });
  });
}

void StageKeeper::fetched(const PlannedFetch& planned, uint64_t name, uint64_t begun,
                          CopyResult result) {
  if (!result.good) {
    failed(planned, result);
    return;
  }
  see_changes();  // changes made during the copy
  ++view_.fetched_files;
  view_.fetched_bytes += result.stat.size;
  if (result.packed) {
    ++view_.packed_files;
    view_.packed_bytes += result.stat.size;
  }
  const auto at = copies_.find(planned.file);
  const bool wanted = plan_->on_staged(planned, result.stat.device, result.stat.size,
                                       result.charged, now_ns(), !result.packed, result.took_ns);
  if (!wanted || at == copies_.end()) {
    folder_->remove(name);
    if (at != copies_.end() && at->second.name == 0 &&
        plan_->table().has(planned.file) == CopyTable::Has::kNot) {
      forget(planned.file);
    }
    remove_evicted();
    return;
  }
  Copy& copy = at->second;
  copy.name = name;
  copy.device = result.stat.device;
  copy.inode = result.stat.inode;
  by_inode_.emplace(std::pair(copy.device, copy.inode), planned.file);
  copy.watched = (result.flags & protocol::kStageLink) != 0 || result.stat.links > 1;
  protocol::StageCopy record{};
  record.name = name;
  record.validated_ns = begun;
  record.stat = result.stat;
  record.flags = result.flags;
  record.copy_inode = result.inode;
  index_.publish(copy.record, record);
  view_.copies = copies_.size();
  if (on_staged) on_staged(planned.session, result.stat.size, result.packed);
  remove_evicted();
}

void StageKeeper::check(const PlannedFetch& planned) {
  const auto at = copies_.find(planned.file);
  protocol::StageCopy copy;
  protocol::StageState state;
  if (at == copies_.end() || !index_.look(at->second.record, &copy, &state)) {
    plan_->on_failed(planned, StagePlan::Failure::kChanged);
    return;
  }
  ++view_.checks;
  executor_.run(
      0, [this, planned, path = files_->path(planned.file), stat = copy.stat, mailbox = mailbox_] {
        const uint64_t begun = now_ns();
        const CopyResult result = look_again(path, stat);
        mailbox->post([this, planned, begun, result] { checked(planned, begun, result); });
      });
}

void StageKeeper::checked(const PlannedFetch& planned, uint64_t begun, const CopyResult& result) {
  if (!result.good) {
    failed(planned, result);
    return;
  }
  const auto at = copies_.find(planned.file);
  if (plan_->on_valid(planned) && at != copies_.end()) index_.validated(at->second.record, begun);
}

void StageKeeper::failed(const PlannedFetch& planned, const CopyResult& result) {
  ++view_.failures;
  if (!result.why.empty()) view_.last_failure = result.why;
  if (logs(Level::kDebug)) say(Level::kDebug, "not staged: {}", result.why);
  if (result.failure == StagePlan::Failure::kFull && !said_full_) {
    said_full_ = true;
    say(Level::kWarn, "{} is full: staging within what fits", folder_->path());
  }
  plan_->on_failed(planned, result.failure);
  const auto at = copies_.find(planned.file);
  if (at != copies_.end() && at->second.name == 0 &&
      plan_->table().has(planned.file) == CopyTable::Has::kNot) {
    forget(planned.file);
  }
  remove_evicted();
}

void StageKeeper::forget(uint32_t file) {
  const auto at = copies_.find(file);
  if (at == copies_.end()) return;
  const Copy copy = at->second;
  index_.remove(copy.record);
  if (copy.name != 0) {
    folder_->remove(copy.name);
    if (copy.watched) watch_->forget_file(files_->path(file));
    const auto [begin, end] = by_inode_.equal_range({copy.device, copy.inode});
    const auto mine = std::find_if(begin, end, [&](const auto& e) { return e.second == file; });
    if (mine != end) by_inode_.erase(mine);
  }
  copies_.erase(at);
  view_.copies = copies_.size();
}

void StageKeeper::remove_evicted() {
  for (const uint32_t file : plan_->table().evicted()) forget(file);
  plan_->table().evicted().clear();
}

// A renamed or moved folder changes the paths of all files below it.
void StageKeeper::drop_below(const std::string& path) {
  std::vector<uint32_t> below;
  for (const auto& [file, copy] : copies_) {
    const std::string& folder = files_->folder_path(files_->folder(file));
    if (folder.compare(0, path.size(), path) != 0) continue;
    if (folder.size() == path.size() || folder[path.size()] == '/') below.push_back(file);
  }
  for (const uint32_t file : below) plan_->drop(file);
  view_.drops += below.size();
}

void StageKeeper::see_changes() {
  if (watch_ == nullptr) return;
  // Also without copies: events queued now must not count as changes of later copies.
  index_.draining_begins();
  std::vector<StageWatch::Change> changes;
  bool lost = false;
  watch_->read(&changes, &lost);
  if (lost) plan_->drop_all();
  drop_changed(changes);
  if (lost || !changes.empty()) remove_evicted();
  index_.draining_ends();
}

void StageKeeper::drop(uint64_t device, uint64_t inode) {
  const auto [begin, end] = by_inode_.equal_range({device, inode});
  std::vector<uint32_t> same;
  for (auto at = begin; at != end; ++at) same.push_back(at->second);
  for (const uint32_t file : same) plan_->drop(file);
  view_.drops += same.size();
  remove_evicted();
}

void StageKeeper::refuse(uint32_t session, uint64_t device, uint64_t inode) {
  std::set<Inode>& refused = refused_[session];
  if (refused.size() < kMostRefused) refused.emplace(device, inode);
}

void StageKeeper::end_session(uint32_t session) { refused_.erase(session); }

bool StageKeeper::is_refused(uint64_t device, uint64_t inode) const {
  return std::any_of(refused_.begin(), refused_.end(), [&](const auto& of_session) {
    return of_session.second.contains({device, inode});
  });
}

void StageKeeper::see_mounts() {
  if (mounts_ == nullptr) return;
  pollfd changed = {mounts_->fd(), POLLPRI, 0};
  if (poll(&changed, 1, 0) > 0) mounts_changed();
}

void StageKeeper::mounts_changed() {
  if (mounts_ == nullptr) return;
  std::vector<StageWatch::Change> changes;
  for (const std::string& point : mounts_->changed()) watch_->mounted(point, &changes);
  drop_changed(changes);
  if (!changes.empty()) remove_evicted();
}

void StageKeeper::drop_changed(const std::vector<StageWatch::Change>& changes) {
  for (const StageWatch::Change& change : changes) {
    const uint32_t file = files_->find(change.path);
    if (file != FileTable::kNone) {
      if (copies_.count(file) == 0) continue;
      plan_->drop(file);
      ++view_.drops;
    } else if (files_->has_folder_below(change.path)) {
      drop_below(change.path);
    }
  }
}

void StageKeeper::tick(uint64_t now, uint64_t budget) {
  if (!index_.exists()) return;
  index_.beat(now);
  see_changes();
  plan_->room().set_budget(std::min(budget, folder_->room(plan_->table().used())),
                           protocol::kStageFiles);
  remove_evicted();
}

}  // namespace sluice::optimizer
