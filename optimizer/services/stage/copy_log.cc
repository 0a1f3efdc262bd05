#include "optimizer/services/stage/copy_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "optimizer/io/log.h"
#include "optimizer/stage/pack_version.h"
#include "optimizer/stage/stage_copy.h"

namespace sluice::optimizer {

using policy::CopyTable;
using policy::FollowedJob;
using policy::LogPlan;
using policy::SampleFileId;
namespace {

// Bytes of a chunk, about: one request of at least 1 MiB; chunks that wait for their fetches take a
// small part of the memory for copies.
constexpr uint64_t kLeastChunk = 1 << 20, kMostChunk = 4 << 20, kChunkShare = 64;
// Of a file whose size is not known: times what is usual, and at least.
constexpr uint64_t kUnknownTimes = 4, kLeastUnknown = 1 << 20;
constexpr uint64_t kFewWaiting = 4 << 20;  // bytes that wait to be written: the writer has time
// Bytes that are moved after the epoch turned, beyond the budget as long as the old log is there.
constexpr uint64_t kMostTurned = 256 << 20;

}  // namespace

struct CopyLog::Pending {
  policy::LogContents::Write write;
  LogSource source;
  uint64_t turn = 0;  // of the log
};

CopyLog::CopyLog(std::shared_ptr<Mailbox> mailbox, const Plans* plans)
    : mailbox_(std::move(mailbox)), plans_(plans), reads_(plans), writer_(1, 1), closer_(1, 1) {}

void CopyLog::use(const std::string& folder, uint64_t bytes) {
  if (requested_) return;
  requested_ = true;
  folder_ = folder;
  budget_ = bytes;
  writer_.run(mount_key(folder), [this, folder, turn = queue_.turn, mailbox = mailbox_] {
    std::string reason;
    std::shared_ptr<LogFiles> files = LogFiles::open(folder, &reason);
    mailbox->post([this, turn, folder, files = std::move(files), reason]() mutable {
      if (files == nullptr) say(Level::kWarn, "policy=lcache has no log: {}", reason);
      if (turn != queue_.turn) {  // released meanwhile
        end_files(mount_key(folder), std::move(files));
        return;
      }
      requested_ = files != nullptr;
      files_ = std::move(files);
    });
  });
}

void CopyLog::unfollow() {
  reads_.clear();
  followed_.reset();
  contents_.reset(0);
}

void CopyLog::clear(uint32_t log) {
  writer_.run(mount_key(folder_), [this, files = files_, log, mailbox = mailbox_,
                                   folder = mount_key(folder_)]() mutable {
    files->clear(log);
    mailbox->post([this, folder, files = std::move(files)]() mutable {
      closer_.run(folder, [files = std::move(files)] { files->close_cleared(); });
    });
  });
}

// Closing a large file takes a while, and one whose file system hangs for good.
void CopyLog::end_files(uint64_t folder, std::shared_ptr<LogFiles> files) {
  if (files == nullptr) return;
  writer_.run(folder, [files = std::move(files)] { files->end(); });
}

void CopyLog::close() {
  unfollow();
  end_files(mount_key(folder_), std::exchange(files_, nullptr));
}

void CopyLog::release() {
  requested_ = failed_ = false;
  ++queue_.turn;
  queue_.waiting = 0;
  damaged_ = 0;
  close();
}

void CopyLog::end(const std::string& why) {
  if (std::exchange(failed_, true)) return;
  say(Level::kWarn, "no log in {} any more: {}; samples are read from their own storage", folder_,
      why);
  close();
}

std::optional<CopyLog::View> CopyLog::view() const {
  if (!requested_ && view_.written_files == 0) return std::nullopt;
  View view = view_;
  view.chunk_reads = reads_.chunk_reads();
  view.lone_reads = reads_.lone_reads();
  if (followed_ != nullptr) view.used_bytes = followed_->job->plan().used();
  return view;
}

bool CopyLog::follow() {
  if (files_ == nullptr) return false;
  if (followed_ == nullptr) choose();
  if (followed_ == nullptr) return false;
  const FollowedJob::Step step = followed_->job->follow();
  if (step.gone) {  // what is written is of no use to the next job
    for (const uint32_t log : {0, 1}) clear(log);
    unfollow();
  }
  if (step.turned) turned();
  if (step.expected) expected();
  return !step.gone;
}

void CopyLog::choose() {
  const uint64_t chunk =
      std::clamp(plans_->stage.room().budget() / kChunkShare, kLeastChunk, kMostChunk);
  auto job = FollowedJob::choose(&plans_->samples, &plans_->sample_files, budget_, chunk);
  if (job == nullptr) return;
  followed_ = std::make_unique<Followed>();
  contents_.reset(job->samples());
  followed_->is_later.assign(job->samples(), false);
  followed_->job = std::move(job);
}

void CopyLog::turned() {
  if (followed_->job->is_in_order(0)) ++view_.predicted_epochs;
  reads_.clear();
  followed_->released.clear();
  const uint32_t old = 1 - followed_->job->plan().current();
  uint64_t room = std::min(kMostTurned, budget_ / 8);
  for (const Later& one : followed_->later) {
    if (one.from.place.length > room) break;
    room -= one.from.place.length;
    move(one, true);
  }
  followed_->later.clear();
  followed_->is_later.assign(followed_->job->samples(), false);
  contents_.clear(old);
  clear(old);
}

// What was read before the next epoch's order was known is not fetched again in this one.
void CopyLog::expected() {
  const FollowedJob& job = *followed_->job;
  for (SampleId sample = 0; sample < job.samples(); ++sample) {
    if (job.is_ordered(sample) && job.is_read(sample)) put_off(sample);
  }
  move_later();
}

// False: the log of this epoch does not have the sample.
bool CopyLog::put_off(SampleId sample) {
  const LogPlan& plan = followed_->job->plan();
  const auto entry = contents_.find(sample, plan.current());
  if (entry && plan.is_ahead() && !followed_->is_later[sample]) {
    followed_->is_later[sample] = true;
    followed_->later.push_back({sample, {*plan.log(plan.current()).place(sample), *entry}});
  }
  return entry.has_value();
}

// Behind all that is not in a log yet.
void CopyLog::move_later() {
  std::deque<Later>& later = followed_->later;
  while (!later.empty() && queue_.waiting < kFewWaiting) {
    const Later one = later.front();
    later.pop_front();
    followed_->is_later[one.sample] = false;
    move(one, false);
  }
}

// This epoch does not read the log for the sample any more.
bool CopyLog::may_leave(SampleId sample) const {
  const FollowedJob& job = *followed_->job;
  return job.is_read(sample) ||
         plans_->stage.table().has(job.file_of(sample)) == CopyTable::Has::kStaged;
}

// `turned`: the log that has the sample is the one of the epoch before.
void CopyLog::move(const Later& one, bool turned) {
  const LogPlan& plan = followed_->job->plan();
  if (!contents_.stands(one.sample, one.from.entry)) return;
  if (turned && plan.is_cached(one.sample)) return;
  if (!turned && !may_leave(one.sample)) return;  // its next fetch writes it
  LogSource source;
  source.logged = one.from;
  source.bytes = one.from.place.length;
  write(one.sample, std::move(source), one.from.entry.version, turned);
}

std::shared_ptr<const LoggedCopy> CopyLog::find(SampleFileId file) {
  const auto sample = follow() ? followed_->job->sample_of(file) : std::nullopt;
  if (!sample) return nullptr;
  const LogPlan& plan = followed_->job->plan();
  const auto entry = contents_.find(*sample, plan.current());
  if (!entry) {
    ++view_.missed_files;
    return nullptr;
  }
  ++view_.found_files;
  LoggedCopy logged;
  logged.place = *plan.log(plan.current()).place(*sample);
  logged.entry = *entry;
  logged.read = reads_.read_of({files_, *followed_->job, contents_}, *sample);
  return std::make_shared<const LoggedCopy>(std::move(logged));
}

bool CopyLog::has(SampleFileId file) {
  const auto sample = follow() ? followed_->job->sample_of(file) : std::nullopt;
  return sample && contents_.find(*sample, followed_->job->plan().current());
}

bool CopyLog::may_move(SampleFileId file) {
  const auto sample = follow() ? followed_->job->sample_of(file) : std::nullopt;
  if (!sample) return false;
  const policy::FileTable& files = plans_->sample_files;
  if (files.knows_bytes(file) && !FollowedJob::may_have(files.bytes(file))) return false;
  const LogPlan& plan = followed_->job->plan();
  return plan.lacks(*sample) || (plan.is_ahead() && plan.is_cached(*sample));
}

bool CopyLog::move(SampleFileId file) {
  const auto sample = follow() ? followed_->job->sample_of(file) : std::nullopt;
  if (!sample || !followed_->job->plan().is_ahead() || !put_off(*sample)) return false;
  move_later();
  return true;
}

uint64_t CopyLog::begin_copy(SampleFileId file) {
  const policy::FileTable& files = plans_->sample_files;
  const uint64_t about = files.bytes(file);
  const uint64_t most =
      files.knows_bytes(file) ? about : std::max(kUnknownTimes * about, kLeastUnknown);
  queue_.waiting += std::min(most, FollowedJob::kMostBytes);
  return std::min(most, FollowedJob::kMostBytes);
}

void CopyLog::write(SampleFileId file, UniqueFd copy, const protocol::StageStat& stat,
                    bool leaves) {
  const auto sample = follow() ? followed_->job->sample_of(file) : std::nullopt;
  if (!sample || !copy || !FollowedJob::may_have(stat.size)) return;
  FollowedJob& job = *followed_->job;
  if (!is_settled(stat) || !job.is_ordered(*sample)) return;
  const bool unread = leaves && !job.is_read(*sample);
  if (unread ? job.plan().is_cached(*sample) : !may_leave(*sample)) return;
  const uint64_t version = version_in_run(stat);
  const uint32_t current = job.plan().current();
  const auto entry = contents_.find(*sample, current);
  if (!job.has_bytes(*sample, stat.size) || (entry && entry->version != version)) {
    drop_sample(*sample);  // its original changed since it was written
    return;
  }
  if (queue_.waiting + stat.size > kMostWaiting) {
    if (!put_off(*sample)) ++view_.skipped_files;
    return;
  }
  // Each write to the log that is read waits for the reads in flight, and those behind it wait too.
  if (unread && !reads_.empty()) return;
  LogSource from;
  from.bytes = stat.size;
  from.copy = std::make_shared<UniqueFd>(std::move(copy));
  write(*sample, std::move(from), version, unread);
}

// A write of a sample that is `unread` is to the log of this epoch.
void CopyLog::write(SampleId sample, LogSource source, uint64_t version, bool unread) {
  LogPlan& plan = followed_->job->plan();
  LogPlan::Moves moves = unread ? plan.returned({&sample, 1}) : plan.consumed({&sample, 1});
  policy::ReleasedRanges& released = followed_->released;
  released.add(moves.release);
  for (const LogPlan::Write& write : moves.writes) {
    if (moves.to_current) released.reclaim(policy::whole_blocks({write.offset, source.bytes}));
  }
  moves.release = released.take(budget_ - std::min(budget_, plan.used()));
  if (!plan.is_cached(sample)) contents_.drop(sample, plan.current());
  if (moves.release.empty() && moves.writes.empty()) return;
  Pending pending;
  pending.source = std::move(source);
  pending.turn = queue_.turn;
  const bool writes = !moves.writes.empty();
  if (writes) {
    const uint32_t to = plan.current() ^ (moves.to_current ? 0 : 1);
    pending.write = contents_.begin(sample, to, version);
    queue_.waiting += pending.source.bytes;
  }
  writer_.run(mount_key(folder_),
              [this, pending = std::move(pending), moves = std::move(moves), files = files_,
               current = plan.current(), writes, mailbox = mailbox_] {
                const LogMoved moved = carry_out(files.get(), current, moves, pending.source);
                if (writes) mailbox->post([this, pending, moved] { wrote(pending, moved); });
              });
}

void CopyLog::wrote(const Pending& pending, const LogMoved& moved) {
  if (pending.turn != queue_.turn) return;
  const uint64_t bytes = pending.source.bytes;
  queue_.waiting -= bytes;
  const bool stands = contents_.end(pending.write, moved.checksum);
  // A log that is being given up may still have the room of what is moved from it.
  const bool full = pending.source.logged && (moved.error == ENOSPC || moved.error == EDQUOT);
  if (stands && moved.error != 0 && !full) {
    end(strerror(moved.error));
    return;
  }
  const policy::SampleId sample = pending.write.sample;
  if (stands && (full || moved.checksum == 0)) {
    drop_sample(sample);
  } else if (stands) {
    ++view_.written_files;
    view_.written_bytes += bytes;
    if (pending.source.logged) ++view_.moved_files;
  }
  if (!follow()) return;
  const FollowedJob& job = *followed_->job;  // its next order may have become known meanwhile
  if (stands && job.plan().lacks(sample) && job.is_ordered(sample) && job.is_read(sample)) {
    put_off(sample);
  }
  move_later();
}

void CopyLog::drop_sample(SampleId sample) {
  followed_->job->plan().drop(sample);
  for (const uint32_t log : {0, 1}) contents_.drop(sample, log);
}

void CopyLog::drop(SampleFileId file) {
  const auto sample = followed_ != nullptr ? followed_->job->sample_of(file) : std::nullopt;
  if (sample) drop_sample(*sample);
}

void CopyLog::drop_all() {
  if (followed_ == nullptr) return;
  for (SampleId sample = 0; sample < followed_->job->samples(); ++sample) drop_sample(sample);
}

void CopyLog::damaged(SampleFileId file, const LoggedCopy& logged) {
  const auto sample = followed_ != nullptr ? followed_->job->sample_of(file) : std::nullopt;
  if (!sample || !contents_.stands(*sample, logged.entry)) return;
  drop_sample(*sample);
  ++view_.damaged_files;
  if (++damaged_ >= kMostDamaged) end("what was written does not come back");
}

}  // namespace sluice::optimizer
