#include "optimizer/services/stage/stage.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "protocol/stage_io.h"

namespace sluice::optimizer {

using policy::CopyMounts;
using policy::CopyTable;
using policy::PlannedFetch;
using policy::SampleFileId;
using policy::StagePlan;
namespace {

// One mount may use an eighth, and its log another: three that hang leave some to the others.
constexpr unsigned kThreads = 8 * CopyMounts::kMaxDepth;
constexpr uint64_t kLargestShare = 4;  // a file is at most this part of the budget
// Copies waiting to be packed: share of the budget, and bytes at most.
constexpr uint64_t kToPackShare = 4, kMostToPack = 64 << 20;
constexpr uint64_t kHangs = 2 * kSecond;  // a read of the fast disk; no reader waits longer, either

}  // namespace

Stage::Stage(Base* base, Plans* plans)
    : base_(base),
      plans_(plans),
      executor_(kThreads, CopyMounts::kMaxDepth),
      disk_{CopyPacker(base->loop.mailbox()), CopyLog(base->loop.mailbox(), plans),
            CopyChunks(base->loop.mailbox())} {
  plans_->stage.is_logged = [this](SampleFileId file) {
    return !disk_.reads->hang() && disk_.log.has(file);
  };
  plans_->samples.orders().in_sequence = [this](auto one) { return disk_.log.follows(one); };
  if (const unsigned removed = StageFolder::remove_leftovers(); removed > 0) {
    say(Level::kInfo, "removed what {} optimizers that were killed had staged", removed);
  }
}

Stage::~Stage() {
  plans_->stage.is_logged = nullptr;
  plans_->samples.orders().in_sequence = nullptr;
  index_.close();
  if (folder_ != nullptr) folder_->clear();
}

bool Stage::open(const std::string& fallback, std::string* reason) {
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
  const auto watch_for = [this](EventLoop::Tag tag, int fd, uint32_t events, auto changed) {
    base_->loop.on(tag, [this, changed](uint64_t, uint32_t) { (this->*changed)(); });
    if (fd >= 0) base_->loop.watch(fd, tag, 0, events);
  };
  watch_for(EventLoop::Tag::kWatch, watch_->fd(), EPOLLIN, &Stage::see_changes);
  watch_for(EventLoop::Tag::kMounts, mounts_->fd(), EPOLLPRI, &Stage::mounts_changed);
  say(Level::kInfo, "staging in {}", folder_->path());
  return true;
}

CopyRules Stage::rules() const {
  return {.any_mount = mounts_seen_.any,
          .most_bytes = plans_->stage.room().budget() / kLargestShare,
          .reads = disk_.reads,
          .packs = disk_.reads->hang() ? nullptr : disk_.packer.packs()};
}

// Threads that hang in the fast disk, of sessions before too, are beside those of the mount.
uint64_t Stage::lane_of(uint64_t device) const {
  const uint64_t lane = 2 * disk_.lane + (disk_.reads->hang() ? 1 : 0);
  return lane == 0 ? device : mount_key(std::to_string(device) + " " + std::to_string(lane));
}

void Stage::carry_out(std::vector<PlannedFetch>* fetches) {
  remove_evicted();
  // A reader that comes to one of them meanwhile waits for its copy.
  const auto fails = [this](auto& one) { return !one.check && !one.to_cache && !announce(one); };
  std::erase_if(*fetches, fails);
  for (auto at = fetches->begin(), next = at; at != fetches->end(); at = next) {
    const PlannedFetch& planned = *at;
    const auto is_apart = [&](const auto& one) { return one.chunk_for != planned.chunk_for; };
    next = planned.chunk_for == 0 ? at + 1 : std::find_if(at, fetches->end(), is_apart);
    if (planned.check) {
      check(planned);
    } else if (planned.to_cache) {
      fetch_to_cache(planned);
    } else {
      fetch({at, next});
    }
  }
  fetches->clear();
}

// False: the index has no room for it.
bool Stage::announce(const PlannedFetch& planned) {
  const std::string path = plans_->sample_files.path(planned.file);
  const uint32_t record = index_.exists() ? index_.add(path) : StageIndex::kNone;
  if (record == StageIndex::kNone) {
    plans_->stage.on_failed(planned, StagePlan::Failure::kError);
    return false;
  }
  copies_.by_file[planned.file] = {record, 0, 0, 0, false};
  return true;
}

CopyJob Stage::job_of(const PlannedFetch& planned) {
  CopyJob job;
  job.path = plans_->sample_files.path(planned.file);
  job.above = plans_->sample_files.folder_path(plans_->sample_files.folder(planned.file));
  job.name = next_name_++;
  job.rules = rules();
  job.rules.fetch = {planned.file, planned.token};
  if (!disk_.reads->hang()) job.rules.logged = disk_.log.find(planned.file);
  return job;
}

// Of several the chunk is read whole. One thread does it all.
void Stage::fetch(std::span<const PlannedFetch> together) {
  std::vector<std::pair<PlannedFetch, CopyJob>> jobs;
  std::shared_ptr<ChunkRead> read;
  for (const PlannedFetch& planned : together) {
    CopyJob job = job_of(planned);
    if (planned.chunk_for != 0 && !disk_.reads->hang())
      job.rules.chunk = disk_.chunks.find(job.path, &read);
    jobs.emplace_back(planned, std::move(job));
  }
  auto work = [this, jobs = std::move(jobs), mailbox = base_->loop.mailbox(), folder = folder_,
               watch = watch_] {
    for (const auto& [planned, job] : jobs) {
      mailbox->post(
          [this, planned = planned, path = job.path, name = job.name,
           done = make_copy(job, folder.get(), watch.get())] { made(planned, path, name, done); });
    }
  };
  executor_.run(lane_of(together.front().device), std::move(work));
}

void Stage::made(const PlannedFetch& planned, const std::string& path, uint64_t name,
                 CopyDone done) {
  if (done.unseen && !std::exchange(warned_.unwatched, true)) {
    say(Level::kWarn,
        "not all folders of the dataset can be watched (inotify): the original of a staged file "
        "is compared each time that the file is opened");
  }
  CopyResult& result = done.result;
  if (result.good && refused_.contains(result.stat.device, result.stat.inode)) {
    folder_->remove(name);
    result = {.why = path + ": mapped for writing"};
    done.to_pack->fd.reset();
  }
  if (done.to_pack->fd) {
    disk_.packer.pack(path, std::move(done.to_pack),
                      std::min(plans_->stage.room().budget() / kToPackShare, kMostToPack));
  }
  fetched(planned, name, done.begun_ns, std::move(result));
}

void Stage::fetch_to_cache(const PlannedFetch& planned) {
  const auto opened = std::make_shared<OpenedFile>();
  // What the job locks is not open elsewhere: opened_ahead.h.
  const bool may_be = opened_ahead.wanted && !plans_->sample_files.only_locked(planned.file);
  const unsigned wanted = may_be ? opened_ahead.wanted(planned.session, planned.file) : 0;
  executor_.run(
      lane_of(planned.device),
      [this, planned, path = plans_->sample_files.path(planned.file), rules = rules(),
       surviving = mounts_seen_.cache_survives, opened, wanted, mailbox = base_->loop.mailbox()] {
        const CopyResult result = read_ahead(path, rules, surviving, wanted, opened.get());
        mailbox->post([this, planned, path, opened, result] {
          if (opened->fd) opened_ahead.opened(planned.session, path, std::move(*opened));
          if (!result.good) {
            failed(planned, result);
            return;
          }
          if (result.stat.size > 0) mounts_seen_.cache_survives.insert(result.stat.device);
          const uint64_t read = result.cached ? 0 : result.stat.size;
          view_.fetched_files += read != 0 ? 1 : 0;
          view_.fetched_bytes += read;
          plans_->stage.on_staged(planned, result.stat.device, result.stat.size, result.charged,
                                  now_ns(), read != 0, result.time);
          plans_->scheduler.on_staged(planned.session, read, false);
          remove_evicted();
        });
      });
}

void Stage::fetched(const PlannedFetch& planned, uint64_t name, uint64_t begun, CopyResult result) {
  if (result.damaged) disk_.log.damaged(planned.file, *result.damaged);
  if (!result.good) return failed(planned, result);
  see_changes();  // changes made during the copy
  ++view_.fetched_files;
  view_.fetched_bytes += result.stat.size;
  view_.packed_files += result.packed ? 1 : 0;
  view_.packed_bytes += result.packed ? result.stat.size : 0;
  view_.logged_files += result.logged ? 1 : 0;
  view_.logged_bytes += result.logged ? result.stat.size : 0;
  view_.chunked_files += result.chunked ? 1 : 0;
  view_.chunked_bytes += result.chunked ? result.stat.size : 0;
  const bool from_disk = result.packed || result.logged || result.chunked;
  if (result.validated_ns != 0) begun = std::min(begun, result.validated_ns);
  const auto at = copies_.by_file.find(planned.file);
  const bool wanted =
      plans_->stage.on_staged(planned, result.stat.device, result.stat.size, result.charged,
                              now_ns(), !from_disk, result.time, result.validated_ns);
  if (!wanted || at == copies_.by_file.end()) {
    folder_->remove(name);
    give_up(planned.file);
    return;
  }
  Copy& copy = at->second;
  copy.name = name;
  copy.device = result.stat.device;
  copy.inode = result.stat.inode;
  copies_.by_inode.emplace(std::pair(copy.device, copy.inode), planned.file);
  copy.watched = (result.flags & protocol::kStageLink) != 0 || result.stat.links > 1;
  protocol::StageCopy record{};
  record.name = name;
  record.validated_ns = begun;
  record.stat = result.stat;
  record.flags = result.flags;
  record.copy_inode = result.inode;
  index_.publish(copy.record, record);
  write_to_log(planned.file, copy, false);
  view_.copies = copies_.by_file.size();
  plans_->scheduler.on_staged(planned.session, result.stat.size, from_disk);
  remove_evicted();
}

void Stage::check(const PlannedFetch& planned) {
  const auto at = copies_.by_file.find(planned.file);
  protocol::StageCopy copy;
  protocol::StageState state;
  if (at == copies_.by_file.end() || !index_.read(at->second.record, &copy, &state) ||
      state != protocol::StageState::kStaged) {
    plans_->stage.on_failed(planned, StagePlan::Failure::kChanged);
    return;
  }
  ++view_.checks;
  executor_.run(
      lane_of(planned.device), [this, planned, path = plans_->sample_files.path(planned.file),
                                stat = copy.stat, mailbox = base_->loop.mailbox()] {
        const uint64_t begun = now_ns();
        const CopyResult result = recheck(path, stat);
        mailbox->post([this, planned, begun, result] { checked(planned, begun, result); });
      });
}

void Stage::checked(const PlannedFetch& planned, uint64_t begun, const CopyResult& result) {
  if (!result.good) return failed(planned, result);
  const auto at = copies_.by_file.find(planned.file);
  if (plans_->stage.on_valid(planned) && at != copies_.by_file.end())
    index_.validated(at->second.record, begun);
}

void Stage::failed(const PlannedFetch& planned, const CopyResult& result) {
  ++view_.failures;
  if (!result.why.empty()) view_.last_failure = result.why;
  if (logs(Level::kDebug)) say(Level::kDebug, "not staged: {}", result.why);
  if (result.failure == StagePlan::Failure::kFull && !std::exchange(warned_.full, true)) {
    say(Level::kWarn, "{} is full: staging within what fits", folder_->path());
  }
  plans_->stage.on_failed(planned, result.failure);
  give_up(planned.file);
}

// It was announced and has no copy, unless it is being fetched again.
void Stage::give_up(SampleFileId file) {
  const auto at = copies_.by_file.find(file);
  const bool copied = at == copies_.by_file.end() || at->second.name != 0;
  if (!copied && plans_->stage.table().has(file) == CopyTable::Has::kNot) remove(file);
  remove_evicted();
}

void Stage::write_to_log(SampleFileId file, const Copy& copy, bool leaves) {
  protocol::StageCopy record;
  protocol::StageState state;
  if (!disk_.log.wants(file) || !index_.read(copy.record, &record, &state)) return;
  disk_.log.write(file, folder_->open_copy(copy.name), record.stat, leaves);
}

void Stage::log_read(policy::DatasetId dataset, std::span<const policy::Extent> parts) {
  if (!disk_.log.follows(dataset) || parts.size() != 1 || !parts.front().file.is_whole()) return;
  const SampleFileId file = parts.front().file.whole();
  if (!disk_.log.may_move(file)) return;
  const auto at = copies_.by_file.find(file);
  if (at != copies_.by_file.end() && at->second.name != 0) write_to_log(file, at->second, false);
  if (plans_->stage.table().has(file) != CopyTable::Has::kNot) return;
  if (disk_.log.move(file) || !disk_.log.may_write()) return;
  auto work = [this, file, path = plans_->sample_files.path(file), any = mounts_seen_.any,
               most = disk_.log.begin_copy(file), turn = disk_.log.turn(),
               mailbox = base_->loop.mailbox()] {
    protocol::StageStat stat;
    auto copy = std::make_shared<UniqueFd>();
    copy_cached(path, {.any_mount = any, .most_bytes = most}, copy.get(), &stat);
    mailbox->post([=, this] {
      disk_.log.end_copy(most, turn);
      disk_.log.write(file, std::move(*copy), stat, false);  // or there is none
    });
  };
  executor_.run(lane_of(plans_->stage.mounts().device_of(file, policy::kNoSession)),
                std::move(work));
}

void Stage::remove(SampleFileId file) {
  const auto at = copies_.by_file.find(file);
  if (at == copies_.by_file.end()) return;
  const Copy copy = at->second;
  if (copy.name != 0) write_to_log(file, copy, true);
  index_.remove(copy.record);
  if (copy.name != 0) {
    folder_->remove(copy.name);
    if (copy.watched) watch_->remove_file(plans_->sample_files.path(file));
    const auto [begin, end] = copies_.by_inode.equal_range({copy.device, copy.inode});
    const auto mine = std::find_if(begin, end, [&](const auto& e) { return e.second == file; });
    if (mine != end) copies_.by_inode.erase(mine);
  }
  copies_.by_file.erase(at);
  view_.copies = copies_.by_file.size();
}

void Stage::remove_evicted() {
  for (const SampleFileId file : plans_->stage.table().take_evicted()) remove(file);
}

// Readers come to the originals instead, also of what waits for a thread behind those that hang.
void Stage::abandon_late(uint64_t before_ns) {
  const bool hung = disk_.reads->hang();
  std::vector<DiskReads::Fetch> fetches = disk_.reads->take_late(before_ns);
  if (!fetches.empty() && !hung) {
    say(Level::kWarn, "the cache folder does not answer: files are read from their own storage");
    for (const auto& [file, copy] : plans_->stage.table().all()) {
      const bool from_disk = CopyMounts::is_log(copy.device) || copy.companion;
      if (from_disk && copy.state == policy::StagedCopy::State::kFetching) {
        fetches.emplace_back(file, copy.token);
      }
    }
  }
  for (const auto& [file, token] : fetches) {
    plans_->stage.on_failed({.token = token, .file = file}, StagePlan::Failure::kAbandoned);
    give_up(file);
  }
}

void Stage::release_disk() {
  disk_.packer.release();
  disk_.log.release();
  disk_.chunks.release();
  if (!disk_.reads->hang()) return;
  abandon_late(UINT64_MAX);
  disk_.reads = std::make_shared<DiskReads>();
  ++disk_.lane;
}

void Stage::tick(uint64_t now, uint64_t budget) {
  if (!index_.exists()) return;
  index_.beat(now);
  abandon_late(now - std::min(now, kHangs));
  see_changes();
  plans_->stage.room().set_budget(std::min(budget, folder_->room(plans_->stage.table().used())),
                                  protocol::kStageFiles);
  remove_evicted();
}

}  // namespace sluice::optimizer
