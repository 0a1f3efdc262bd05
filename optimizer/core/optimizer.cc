#include "optimizer/core/optimizer.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "optimizer/io/residency.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kTickNs = 100 * kMillisecond;
constexpr uint64_t kBudgetNs = kSecond;
constexpr uint64_t kHungNs = 10 * kSecond;
constexpr uint64_t kIdleTimeoutNs = kSecond;
constexpr uint64_t kLookNs = 20 * kMillisecond;
constexpr uint64_t kMinReapNs = 300'000;
constexpr uint64_t kMaxReapNs = 2 * kMillisecond;
// What is known of samples may take 1/kTablesShare of the budget, within these limits (bytes).
constexpr uint64_t kTablesShare = 4;
constexpr uint64_t kLeastTables = 16 << 20;
constexpr uint64_t kMostTables = 512 << 20;
constexpr uint64_t kFirst = 5 * kSecond;  // the starting process has so long for its hello

}  // namespace

Optimizer::Optimizer(const DaemonOptions& options, Seat* seat, int stop_fd)
    : options_(options),
      seat_(seat),
      stop_fd_(stop_fd),
      linger_(options.linger),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      started_ns_(now_ns()),
      idle_since_ns_(started_ns_),
      engine_(make_engine(options.no_uring)),
      samples_(&sample_files_),
      stage_plan_(&sample_files_),
      scheduler_(this, &samples_, &stage_plan_),
      mailbox_(std::make_shared<Mailbox>()),
      stage_(&stage_plan_, &sample_files_, mailbox_),
      files_(&scheduler_, &executor_, mailbox_, options.no_cachestat),
      places_(&samples_, &sample_files_, &files_, &executor_, mailbox_,
              [this] { orders_new_ = true; }),
      records_(&samples_, &files_, &executor_, mailbox_, [this] { orders_new_ = true; }),
      recordings_(&executor_, mailbox_),
      server_(
          seat->listener(),
          [this](const Peer& peer, std::span<const std::byte> packet, std::vector<UniqueFd> fds) {
            on_packet(peer, packet, std::move(fds));
          },
          [this](int fd, uint64_t connection, uint32_t events, bool add) {
            watch(fd, Tag::kConnection, connection, events, add);
          }),
      no_cachestat_(options.no_cachestat),
      no_pagemap_scan_(options.no_pagemap_scan) {
  stage_.on_staged = [this](uint32_t session, uint64_t bytes, bool packed) {
    scheduler_.on_staged(session, bytes, packed);
  };
  files_.on_ready = [this](const FileEntry& file) {
    places_.file_ready(file);
    records_.file_ready(file);
  };
  files_.on_all_closed = [this] { answer_waiters(false); };
  recordings_.on_settled = [this] { answer_waiters(false); };
  files_.on_refused = [this](const FileEntry& file) {
    for (const uint32_t id : file.sessions) {
      if (const auto at = sessions_.find(id); at != sessions_.end()) ++at->second->mounts_refused;
    }
  };
  watch(seat->listener(), Tag::kListener, 0, EPOLLIN, true);
  watch(mailbox_->fd(), Tag::kMailbox, 0, EPOLLIN, true);
  watch(engine_->event_fd(), Tag::kEngine, 0, EPOLLIN, true);
  watch(stop_fd_, Tag::kStop, 0, EPOLLIN, true);
  update_budget();
}

Optimizer::~Optimizer() { sessions_.clear(); }

void Optimizer::watch(int fd, Tag tag, uint64_t value, uint32_t events, bool add) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(tag) << 56 | value;
  epoll_ctl(epoll_.get(), add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

bool Optimizer::awaited(uint32_t id) const {
  const auto at = files_.all().find(id);
  return at != files_.all().end() && at->second.state == FileEntry::State::kOpening;
}

uint64_t Optimizer::cached(uint32_t id, Range range) {
  const FileEntry* file = files_.find(id);
  uint64_t bytes = 0;
  if (file == nullptr || !file->fd) return 0;
  return cached_bytes(file->fd.get(), range, no_cachestat_, &bytes) ? bytes : 0;
}

bool Optimizer::known(uint32_t id) const {
  const auto at = files_.all().find(id);
  return at == files_.all().end() || at->second.residency_known;
}

bool Optimizer::exact(uint32_t id) const {
  const auto at = files_.all().find(id);
  return at != files_.all().end() && at->second.residency_exact;
}

void Optimizer::dispatch(uint64_t data, uint32_t events) {
  const uint64_t value = data & ((1ULL << 56) - 1);
  switch (static_cast<Tag>(data >> 56)) {
    case Tag::kListener:
      deaf_ = !server_.on_listener(now_ns());
      if (deaf_) watch(seat_->listener(), Tag::kListener, 0, 0, false);
      break;
    case Tag::kMailbox:
      run_mailbox();
      break;
    case Tag::kEngine:
      engine_->acknowledge();
      finish_reads();
      break;
    case Tag::kStop:
      stopping_ = true;
      break;
    case Tag::kConnection:
      server_.on_ready(value, events, now_ns());
      break;
    case Tag::kWatch:
      stage_.see_changes();
      break;
    case Tag::kMounts:
      stage_.mounts_changed();
      break;
    case Tag::kProcess:
      on_process_end(static_cast<uint32_t>(value >> 16), static_cast<uint32_t>(value & 0xffff));
      break;
    case Tag::kPeer:
      if (const auto at = sessions_.find(static_cast<uint32_t>(value)); at != sessions_.end()) {
        at->second->peer_pidfd.reset();
      }
      break;
  }
}

uint64_t Optimizer::timeout_ns() const {
  const uint64_t now = now_ns();
  uint64_t until = now + (sessions_.empty() && waiters_.empty() ? kIdleTimeoutNs : kTickNs);
  if (reap_ns_ != 0) until = std::min(until, reap_ns_);
  // A completion during the switch to notification may go unnoticed: look in any case.
  if (engine_->in_flight() > 0) until = std::min(until, now + kLookNs);
  until = std::min(until, next_observation_ns());
  if (!chosen_.empty()) until = now;
  return until > now ? until - now : 0;
}

// With many reads in flight their results are collected a few at a time: often enough that the
// pipeline never runs dry, seldom enough that the thread is not woken for each.
void Optimizer::relax() {
  const uint64_t interval = scheduler_.queue().refill_ns(now_ns());
  reap_ns_ = interval >= kMinReapNs ? now_ns() + std::min(interval, kMaxReapNs) : 0;
  engine_->notify(reap_ns_ == 0);
}

void Optimizer::run() {
  while (!stopping_) {
    guarded(0, [this] {
      turn(timeout_ns());
      observe(now_ns());
      begin_epoch();
      pump();
      idle_->store(reads_.empty() && planned_.empty() && stage_plan_.mounts().in_flight() == 0,
                   std::memory_order_relaxed);
      relax();
      tick();
      record(now_ns());
    });
  }
  say(Level::kInfo, "ending");
  seat_->stop_listening();  // before any response says that the optimizer has ended
  records_.give_up();
  while (!sessions_.empty()) end_session(sessions_.begin()->first);
  // The process that requested the stop may unmount next: wait for files to be closed.
  const uint64_t deadline = now_ns() + kSecond;
  while (files_.closing() + recordings_.unsettled() + places_.unsettled() > 0 &&
         now_ns() < deadline) {
    turn(kLookNs);
  }
  answer_waiters(true);
}

void Optimizer::run_mailbox() {
  mailbox_->run([](const std::exception& error) {
    say(Level::kError, "something is left undone: {}", error.what());
  });
}

void Optimizer::turn(uint64_t timeout) {
  epoll_event events[64];
  const timespec wait{static_cast<time_t>(timeout / kSecond), static_cast<long>(timeout % kSecond)};
  const int count = static_cast<int>(
      // epoll_pwait2() is missing from the oldest supported C library: use its system call.
      syscall(SYS_epoll_pwait2, epoll_.get(), events, std::size(events), &wait, nullptr, 0));
  if (count < 0 && errno != EINTR) stopping_ = true;
  for (int i = 0; i < count; ++i) dispatch(events[i].data.u64, events[i].events);
  if (engine_->in_flight() > 0) finish_reads();
}

void Optimizer::tick() {
  const uint64_t now = now_ns();
  if (now < next_tick_ns_) return;
  next_tick_ns_ = now + kTickNs;
  if (doomed_ != 0) end_session(std::exchange(doomed_, 0));
  relieve();
  if (std::exchange(deaf_, false)) {
    watch(seat_->listener(), Tag::kListener, 0, EPOLLIN, false);
  }
  find_unwatched();
  end_empty_sessions(now);
  for (const uint64_t device : scheduler_.queue().hung(now, kHungNs)) {
    files_.turn_mount_off(device, "a read has been under way for too long: it hangs");
  }
  files_.complain_of_hung_opens(now, kHungNs);
  recordings_.tick();
  watch_harm(now);
  publish_metrics();
  ask_for_pages();
  server_.expire(now);
  for (const uint64_t connection : choosing_) {
    server_.send(connection, protocol::MessageKind::kWorking, {});
  }
  share_budget(now);
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (now < waiter.deadline_ns) return false;
    say(Level::kWarn, "a file system does not let go of {} files",
        files_.closing() + recordings_.unsettled());
    server_.send(waiter.connection, protocol::MessageKind::kGone, {});
    return true;
  });
  if (now >= next_budget_ns_ && (!sessions_.empty() || !stage_plan_.table().all().empty()))
    update_budget();
  if (!sessions_.empty()) {
    idle_since_ns_ = now;
  } else if (now - idle_since_ns_ >= std::max(linger_ * kSecond, next_session_ == 1 ? kFirst : 0)) {
    stopping_ = true;
  }
  if (!seat_->still_ours()) {
    // New jobs cannot find this optimizer. It ends once its present sessions have ended.
    if (sessions_.empty()) stopping_ = true;
  }
}

void Optimizer::update_budget() {
  next_budget_ns_ = now_ns() + kBudgetNs;
  shares_.look(memory_.read(), options_.memory, stage_plan_.table().used());
  samples_.set_most_bytes(std::clamp(shares_.budget() / kTablesShare, kLeastTables, kMostTables));
  records_.set_budget(shares_.budget());
  scheduler_.retention().set_most(shares_.most());
  share_budget(now_ns());
}

void Optimizer::pump() {
  const uint64_t now = now_ns();
  start_reads(now);
  start_drops(now);
}

void Optimizer::start_reads(uint64_t now) {
  predict(now);
  scheduler_.plan(now, &planned_);
  stage_.carry_out(&scheduler_.fetches());
  size_t started = 0;
  for (const PlannedRead& read : planned_) {
    FileEntry* file = files_.find(read.file);
    const bool usable = file != nullptr && file->state == FileEntry::State::kReady;
    if (usable && !engine_->submit({read.token, file->fd.get(), read.range.begin,
                                    static_cast<uint32_t>(read.range.length())})) {
      break;  // the engine is full: the rest waits for completions
    }
    ++started;
    if (!usable) {
      scheduler_.on_done(read.token, 0, ECANCELED, now);
      continue;
    }
    files_.read_started(read.file);
    reads_[read.token] = {read.file, read.range};
  }
  planned_.erase(planned_.begin(), planned_.begin() + static_cast<ptrdiff_t>(started));
  engine_->flush();
}

void Optimizer::finish_reads() {
  std::vector<ReadResult> results;
  engine_->reap(&results);
  const uint64_t now = now_ns();
  for (const ReadResult& result : results) {
    const auto at = reads_.find(result.token);
    if (at == reads_.end()) continue;
    const Read read = at->second;
    reads_.erase(at);
    scheduler_.on_done(result.token, result.bytes, result.error, now);
    if (result.bytes > 0) {
      files_.verify(read.file, {read.range.begin, read.range.begin + result.bytes});
    }
    files_.read_ended(read.file);
  }
}

void Optimizer::start_drops(uint64_t now) {
  std::vector<PlannedDrop> drops;
  scheduler_.drops(now, &drops);
  for (const PlannedDrop& drop : drops) {
    FileEntry* file = files_.find(drop.file);
    if (file == nullptr || !file->fd) {
      scheduler_.on_dropped(drop, drop.range.length(), now);
      continue;
    }
    files_.read_started(drop.file);
    executor_.run(file->device, [this, mailbox = mailbox_, fd = file->fd.get(), drop,
                                 no_cachestat = no_cachestat_] {
      posix_fadvise(fd, static_cast<off_t>(drop.range.begin),
                    static_cast<off_t>(drop.range.length()), POSIX_FADV_DONTNEED);
      uint64_t left = 0;
      // Where the kernel reports no exact residency, probing would read the pages back in.
      if (!cached_exactly(fd, drop.range, no_cachestat, &left)) left = 0;
      mailbox->post([this, drop, left] {
        scheduler_.on_dropped(drop, left, now_ns());
        files_.read_ended(drop.file);
      });
    });
  }
}

}  // namespace sluice::optimizer
