#include "optimizer/services/streams/transfers.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "optimizer/io/residency.h"

namespace sluice::optimizer {

using policy::PlannedDrop;
using policy::PlannedRead;
namespace {

constexpr uint64_t kPollNs = 20 * kMillisecond;
constexpr uint64_t kMinReapNs = 300'000;
constexpr uint64_t kMaxReapNs = 2 * kMillisecond;

}  // namespace

Transfers::Transfers(const Service& service, bool no_uring)
    : Service(service), engine_(make_engine(no_uring)) {
  base_->loop.on(EventLoop::Tag::kEngine, [this](uint64_t, uint32_t) {
    engine_->acknowledge();
    finish();
  });
  base_->loop.watch(engine_->event_fd(), EventLoop::Tag::kEngine, 0, EPOLLIN);
  base_->loop.wake_by([this](uint64_t now) {
    const uint64_t reap = reap_ns_ != 0 ? reap_ns_ : UINT64_MAX;
    // A completion during the switch to notification may go unnoticed: poll in any case.
    return engine_->in_flight() > 0 ? std::min(reap, now + kPollNs) : reap;
  });
}

// With many reads in flight their results are collected a few at a time: often enough that the
// pipeline never runs dry, seldom enough that the thread is not woken for each.
void Transfers::relax() {
  const uint64_t interval = plans_->scheduler.queue().refill_ns(now_ns());
  reap_ns_ = interval >= kMinReapNs ? now_ns() + std::min(interval, kMaxReapNs) : 0;
  engine_->notify(reap_ns_ == 0);
}

void Transfers::start(uint64_t now) {
  size_t started = 0;
  for (const PlannedRead& read : planned_) {
    FileEntry* file = files_->find(read.file);
    const bool usable = file != nullptr && file->state == FileEntry::State::kReady;
    if (usable && !engine_->submit({read.token, file->fd.get(), read.range.begin,
                                    static_cast<uint32_t>(read.range.length())})) {
      break;  // the engine is full: the rest waits for completions
    }
    ++started;
    if (!usable) {
      plans_->scheduler.on_done(read.token, 0, ECANCELED, now);
      continue;
    }
    files_->read_started(read.file);
    reads_[read.token] = {read.file, read.range};
  }
  planned_.erase(planned_.begin(), planned_.begin() + static_cast<ptrdiff_t>(started));
  engine_->flush();
}

void Transfers::finish() {
  std::vector<ReadResult> results;
  engine_->reap(&results);
  const uint64_t now = now_ns();
  for (const ReadResult& result : results) {
    const auto at = reads_.find(result.token);
    if (at == reads_.end()) continue;
    const Read read = at->second;
    reads_.erase(at);
    plans_->scheduler.on_done(result.token, result.bytes, result.error, now);
    if (result.bytes > 0) {
      files_->verify(read.file, {read.range.begin, read.range.begin + result.bytes});
    }
    files_->read_ended(read.file);
  }
}

void Transfers::start_drops(uint64_t now) {
  std::vector<PlannedDrop> drops;
  plans_->scheduler.drops(now, &drops);
  for (const PlannedDrop& drop : drops) {
    FileEntry* file = files_->find(drop.file);
    if (file == nullptr || !file->fd) {
      plans_->scheduler.on_dropped(drop, drop.range.length(), now);
      continue;
    }
    files_->read_started(drop.file);
    base_->executor.run(file->device, [this, mailbox = base_->loop.mailbox(), fd = file->fd.get(),
                                       residency = file->residency, drop]() mutable {
      posix_fadvise(fd, static_cast<off_t>(drop.range.begin),
                    static_cast<off_t>(drop.range.length()), POSIX_FADV_DONTNEED);
      uint64_t left = 0;
      // Where the kernel reports no exact residency, probing would read the pages back in.
      if (!residency->exactly(drop.range, &left)) left = 0;
      residency.reset();  // a mapping holds the mount, too
      mailbox->post([this, drop, left] {
        plans_->scheduler.on_dropped(drop, left, now_ns());
        files_->read_ended(drop.file);
      });
    });
  }
}

}  // namespace sluice::optimizer
