#include "optimizer/services/stage/copy_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "optimizer/io/log.h"
#include "optimizer/stage/pack_version.h"
#include "optimizer/stage/stage_copy.h"

namespace sluice::optimizer {

using policy::CopyTable;
using policy::FollowedJob;
using policy::LogIndex;
using policy::LogPlan;
using policy::LogRange;
using policy::SampleFileId;
namespace {

// Bytes of a chunk, about: one request of at least 1 MiB; chunks that wait for their fetches take a
// small part of the memory for copies.
constexpr uint64_t kLeastChunk = 1 << 20, kMostChunk = 4 << 20, kChunkShare = 64;
constexpr uint32_t kReadAhead = 12;  // chunks
// Bytes of all chunks that are being read or wait for fetches; the share is of the memory for
// copies, beside which they are.
constexpr uint64_t kLeastReads = 16 << 20, kMostReads = 64 << 20, kReadsShare = 4;
constexpr unsigned kReaders = 4;

// All of the file. Empty: it is shorter, or cannot be read.
std::vector<std::byte> content(int fd, uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = pread(fd, bytes.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    done += static_cast<size_t>(got);
  }
  return bytes;
}

// Whether this is the original, which may change while it is read; a copy is another file.
bool is_original(int fd, const protocol::StageStat& stat) {
  struct stat about {};
  return fstat(fd, &about) == 0 && about.st_dev == stat.device && about.st_ino == stat.inode;
}

LogRange whole_blocks(uint64_t offset, uint64_t bytes) {
  constexpr uint64_t kBlock = LogIndex::kBlock;
  const uint64_t from = offset / kBlock * kBlock;
  return {from, (offset + bytes + kBlock - 1) / kBlock * kBlock - from};
}

template <typename Many, typename Member>
uint64_t total(const Many& many, Member member) {
  uint64_t sum = 0;
  for (const auto& one : many) sum += one.*member;
  return sum;
}

}  // namespace

struct CopyLog::Pending {
  policy::LogContents::Write write;
  uint64_t bytes = 0;  // 0: nothing is to be written
  protocol::StageStat stat{};
  std::shared_ptr<UniqueFd> source;
};

CopyLog::CopyLog(std::shared_ptr<Mailbox> mailbox, const Plans* plans)
    : mailbox_(std::move(mailbox)), plans_(plans), writer_(1, 1), readers_(kReaders, kReaders) {}

void CopyLog::use(const std::string& folder, uint64_t bytes) {
  if (requested_) return;
  requested_ = true;
  folder_ = folder;
  budget_ = bytes;
  writer_.run(0, [this, folder, mailbox = mailbox_] {
    std::string reason;
    std::shared_ptr<LogFiles> files = LogFiles::open(folder, &reason);
    mailbox->post([this, files, reason] {
      if (files == nullptr) say(Level::kWarn, "policy=lcache has no log: {}", reason);
      if (!requested_) return;  // released meanwhile
      requested_ = files != nullptr;
      files_ = files;
    });
  });
}

void CopyLog::unfollow() {
  followed_.reset();
  contents_.reset(0);
}

// Closing a large file takes a while.
void CopyLog::close() {
  unfollow();
  if (files_ != nullptr) writer_.run(0, [files = std::exchange(files_, nullptr)] {});
}

void CopyLog::release() {
  requested_ = failed_ = false;
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
  if (followed_ != nullptr) view.used_bytes = followed_->job->plan().used();
  return view;
}

bool CopyLog::follow() {
  if (files_ == nullptr) return false;
  if (followed_ == nullptr) choose();
  if (followed_ == nullptr) return false;
  const FollowedJob::Step step = followed_->job->follow();
  if (step == FollowedJob::Step::kTurned) turned();
  if (step != FollowedJob::Step::kGone) return true;
  unfollow();
  return false;
}

void CopyLog::choose() {
  const uint64_t chunk =
      std::clamp(plans_->stage.room().budget() / kChunkShare, kLeastChunk, kMostChunk);
  auto job = FollowedJob::choose(&plans_->samples, &plans_->sample_files, budget_, chunk);
  if (job == nullptr) return;
  followed_ = std::make_unique<Followed>();
  contents_.reset(job->samples());
  followed_->job = std::move(job);
}

void CopyLog::turned() {
  ++view_.predicted_epochs;
  for (const OpenRead& open : followed_->reads) open.read->cancel();
  followed_->reads.clear();
  followed_->released.clear();
  const uint32_t old = 1 - followed_->job->plan().current();
  contents_.clear(old);
  writer_.run(0, [files = files_, old] { files->clear(old); });
}

// The read of a chunk that is about to be read as a whole, which may have begun. nullptr: fewer
// than two of its members are wanted, or not together, or there is no room: reads `ahead` do not
// displace others.
CopyLog::OpenRead* CopyLog::open_chunk(uint32_t chunk, bool ahead) {
  std::deque<OpenRead>& reads = followed_->reads;
  const auto open = std::ranges::find(reads, chunk, &OpenRead::chunk);
  if (open != reads.end()) return &*open;
  const FollowedJob& job = *followed_->job;
  const uint32_t current = job.plan().current();
  if (chunk >= job.plan().log(current).chunks() || !job.is_in_order(chunk)) return nullptr;
  std::vector<SampleId> wanted;
  for (const SampleId member : job.plan().log(current).members(chunk)) {
    if (!job.is_ordered(member) || job.is_read(member)) continue;
    if (!contents_.find(member, current)) continue;
    if (plans_->stage.table().has(job.file_of(member)) == CopyTable::Has::kStaged) continue;
    wanted.push_back(member);
  }
  if (wanted.size() < 2) return nullptr;
  std::vector<LogRange> ranges = job.plan().reads(wanted).ranges;
  const uint64_t bytes = total(ranges, &LogRange::length);
  const uint64_t most =
      std::clamp(plans_->stage.room().budget() / kReadsShare, kLeastReads, kMostReads);
  if (bytes > most) return nullptr;
  while (bytes + total(reads, &OpenRead::bytes) > most) {
    if (ahead) return nullptr;
    reads.pop_front();
  }
  ++view_.chunk_reads;
  auto read = std::make_shared<LogRead>(files_, current, std::move(ranges));
  readers_.run(0, [read] { read->prepare(); });
  reads.push_back({chunk, bytes, std::move(wanted), std::move(read)});
  return &reads.back();
}

// What the job has read itself is not fetched any more.
void CopyLog::close_reads() {
  for (OpenRead& open : followed_->reads) {
    std::erase_if(open.left, [this](SampleId member) { return followed_->job->is_read(member); });
  }
  std::erase_if(followed_->reads, [](const OpenRead& one) { return one.left.empty(); });
}

// Workers are apart, and each that comes to what has not been requested reads it by itself.
void CopyLog::read_ahead(uint32_t chunk) {
  for (uint32_t next = chunk + 1; next <= chunk + kReadAhead; ++next) {
    open_chunk(next, true);
  }
}

std::shared_ptr<LogRead> CopyLog::read_of(SampleId sample) {
  const LogPlan& plan = followed_->job->plan();
  const uint32_t chunk = plan.log(plan.current()).chunk_of(sample);
  std::shared_ptr<LogRead> read;
  if (OpenRead* open = open_chunk(chunk, false);
      open != nullptr && std::erase(open->left, sample) != 0) {
    read = open->read;
    close_reads();
    read_ahead(chunk);
  } else {
    ++view_.lone_reads;
    read = std::make_shared<LogRead>(files_, plan.current(), plan.reads({&sample, 1}).ranges);
  }
  return read;
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
  logged.read = read_of(*sample);
  return std::make_shared<const LoggedCopy>(std::move(logged));
}

bool CopyLog::is_coming(SampleFileId file) const {
  if (followed_ == nullptr || followed_->reads.empty()) return false;
  const auto sample = followed_->job->sample_of(file);
  return sample && std::ranges::any_of(followed_->reads, [&](const OpenRead& open) {
           return std::ranges::find(open.left, *sample) != open.left.end();
         });
}

void CopyLog::write(SampleFileId file, UniqueFd source, const protocol::StageStat& stat,
                    bool leaves) {
  const auto sample = follow() ? followed_->job->sample_of(file) : std::nullopt;
  if (!sample || !source || stat.size == 0 || stat.size > FollowedJob::kMostBytes) return;
  FollowedJob& job = *followed_->job;
  if (!is_settled(stat) || !job.is_ordered(*sample)) return;
  if (waiting_ + stat.size > kMostWaiting) {
    ++view_.skipped_files;
    return;
  }
  const uint64_t version = version_in_run(stat);
  const uint32_t current = job.plan().current();
  const auto entry = contents_.find(*sample, current);
  if (!job.has_bytes(*sample, stat.size) || (entry && entry->version != version)) {
    drop_sample(*sample);  // its original changed since it was written
    return;
  }
  const bool unread = leaves && !job.is_read(*sample);
  // Each write to the log that is read waits for the reads in flight, and those behind it wait too.
  if (unread && !followed_->reads.empty()) return;
  LogPlan::Moves moves =
      unread ? job.plan().returned({&*sample, 1}) : job.plan().consumed({&*sample, 1});
  policy::ReleasedRanges& released = followed_->released;
  released.add(moves.release);
  for (const LogPlan::Write& write : moves.writes) {
    if (moves.to_current) released.reclaim(whole_blocks(write.offset, stat.size));
  }
  moves.release = released.take(budget_ - std::min(budget_, job.plan().used()));
  if (!job.plan().is_cached(*sample)) contents_.drop(*sample, current);
  Pending pending;
  pending.stat = stat;
  pending.source = std::make_shared<UniqueFd>(std::move(source));
  if (!moves.writes.empty()) {
    pending.write = contents_.begin(*sample, current ^ (moves.to_current ? 0 : 1), version);
    pending.bytes = stat.size;
  }
  carry_out(std::move(pending), std::move(moves));
}

void CopyLog::carry_out(Pending pending, LogPlan::Moves moves) {
  if (moves.release.empty() && moves.writes.empty()) return;
  waiting_ += pending.bytes;
  const uint32_t current = followed_->job->plan().current();
  writer_.run(0, [this, pending = std::move(pending), moves = std::move(moves), files = files_,
                  current, mailbox = mailbox_]() mutable {
    // Where blocks cannot be released, the log takes its room until it is cleared.
    for (const LogRange& range : moves.release) files->release(current, range);
    int error = 0;
    uint64_t checksum = 0;
    const int source = pending.source->get();
    for (const LogPlan::Write& write : moves.writes) {
      const std::vector<std::byte> bytes = content(source, pending.bytes);
      const bool changed = is_original(source, pending.stat) && !is_unchanged(source, pending.stat);
      if (changed || bytes.empty()) continue;
      error = files->write(pending.write.log, write.offset, bytes);
      checksum = LogFiles::checksum(bytes);
    }
    pending.source.reset();
    if (pending.bytes == 0) return;
    mailbox->post([this, pending, checksum, error] { wrote(pending, checksum, error); });
  });
}

void CopyLog::wrote(const Pending& pending, uint64_t checksum, int error) {
  waiting_ -= pending.bytes;
  if (!contents_.end(pending.write, checksum)) return;
  if (error != 0) {
    end(strerror(error));
    return;
  }
  if (checksum == 0) {  // it could not be read, or changed
    drop_sample(pending.write.sample);
    return;
  }
  ++view_.written_files;
  view_.written_bytes += pending.bytes;
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
