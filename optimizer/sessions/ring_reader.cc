#include "optimizer/sessions/ring_reader.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>
#include <iterator>
#include <new>
#include <utility>

#include "optimizer/io/clock.h"

namespace sluice::optimizer {
namespace {

using protocol::Slot;

constexpr uint64_t kUnfinishedNs =
    100 * kMillisecond;  // filling a claimed entry takes a producer less than this
constexpr size_t kBatch = 4096;
// While sample events arrive at a high rate and nothing is being fetched, the reader polls at this
// interval instead of being woken for each: a wake-up takes longer than reading a cached sample.
constexpr uint64_t kDozeNs = 10 * kMillisecond;

void futex_wait(std::atomic<uint32_t>& word, uint32_t value, uint64_t timeout_ns) {
  timespec timeout{static_cast<time_t>(timeout_ns / kSecond),
                   static_cast<long>(timeout_ns % kSecond)};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

RingReader::RingReader(protocol::Shared* shared, Handler handler)
    : shared_(shared), handler_(std::move(handler)), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "sluice-ring");
}

RingReader::~RingReader() {
  stop_ = true;
  ring();
  thread_.join();
}

void RingReader::ring() {
  shared_->header.doorbell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(shared_->header.doorbell);
}

void RingReader::free_slot(uint32_t slot, uint32_t pid) {
  {
    const std::lock_guard lock(mutex_);
    to_free_.emplace_back(slot, pid);
  }
  ring();
}

void RingReader::after_events(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(then));
  }
  ring();
}

bool RingReader::drain(uint32_t index, bool dead) {
  Slot& slot = shared_->slots[index];
  Seen& seen = seen_[index];
  bool any = false;
  const uint64_t claimed = slot.tail.load(std::memory_order_relaxed);
  const uint64_t waiting = claimed - slot.head.load(std::memory_order_relaxed);
  if (waiting > protocol::kRingEntries) {
    // A correct producer claims no more entries than there is room for.
    slot.head.store(claimed, std::memory_order_release);
    return false;
  }
  for (uint64_t taken = 0; taken < waiting; ++taken) {
    TakenEvent event{index, seen.pid, {}};
    const protocol::Take take = protocol::take(slot, event.data);
    if (take == protocol::Take::kEvent) {
      seen.unfinished_since_ns = 0;
      batch_.push_back(event);
      sampled_ |= event.data.kind >= protocol::EventKind::kSampleBegin;
      any = true;
      continue;
    }
    if (take == protocol::Take::kEmpty) {
      seen.unfinished_since_ns = 0;
      break;
    }
    const uint64_t now = now_ns();
    if (seen.unfinished_since_ns == 0) seen.unfinished_since_ns = now;
    if (!dead && now - seen.unfinished_since_ns < kUnfinishedNs) {
      unfinished_ = true;
      break;
    }
    protocol::skip(slot);
    seen.unfinished_since_ns = 0;
    any = true;
  }
  return any;
}

bool RingReader::scan() {
  bool any = false;
  unfinished_ = cut_ = false;
  for (uint32_t index = 0; index < protocol::kSlots; ++index) {
    Slot& slot = shared_->slots[index];
    const uint32_t pid = slot.pid.load(std::memory_order_acquire);
    if (pid == 0 && seen_[index].pid == 0) continue;
    if (pid != 0 && pid != seen_[index].pid) {
      handler_.slot_taken(index, pid);
      seen_[index] = {pid, 0};
    }
    any |= drain(index, false);
    if (batch_.size() >= kBatch) {
      cut_ = true;
      break;
    }
  }
  if (!batch_.empty()) {
    handler_.events(std::move(batch_));
    batch_ = {};
  }
  return any;
}

// Callbacks registered before the scan run after it, unless it was cut short: all events of before
// their registration have then been handed on. Entries still being filled do not count.
bool RingReader::scan_all() {
  size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = waiting_.size();
  }
  const bool any = scan();
  if (count == 0 || cut_) return any;
  std::vector<std::function<void()>> done;
  {
    const std::lock_guard lock(mutex_);
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
    done.assign(std::move_iterator(waiting_.begin()), std::move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
  }
  for (const auto& then : done) then();
  return any;
}

void RingReader::free_slots() {
  for (;;) {
    std::pair<uint32_t, uint32_t> next;
    {
      const std::lock_guard lock(mutex_);
      if (to_free_.empty()) return;
      next = to_free_.front();
    }
    free_now(next.first, next.second);
    const std::lock_guard lock(mutex_);
    to_free_.pop_front();
  }
}

void RingReader::free_now(uint32_t index, uint32_t pid) {
  Slot& slot = shared_->slots[index];
  if (slot.pid.load(std::memory_order_acquire) != pid) return;
  drain(index, true);
  if (!batch_.empty()) {
    handler_.events(std::move(batch_));
    batch_ = {};
  }
  // What is still claimed was claimed by a process that has ended, or is invalid.
  slot.head.store(slot.tail.load(std::memory_order_relaxed), std::memory_order_release);
  ClientMetrics metrics{};
  for (uint32_t i = 0; i < metrics.size(); ++i) {
    metrics[i] = slot.metrics[i].exchange(0, std::memory_order_relaxed);
  }
  seen_[index] = {};
  slot.generation.fetch_add(1, std::memory_order_relaxed);
  handler_.slot_freed(index, pid, metrics);
  slot.pid.store(0, std::memory_order_release);
}

void RingReader::run() {
  for (;;) {
    try {
      read_until_stopped();
      return;
    } catch (const std::bad_alloc&) {
      // The events taken are lost, as when a ring is full; memory may be available again later.
      batch_ = {};
      if (stop_) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

void RingReader::read_until_stopped() {
  protocol::Header& header = shared_->header;
  while (!stop_) {
    free_slots();
    if (handler_.congested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    if (scan_all()) continue;
    const bool doze = std::exchange(sampled_, false) && handler_.patient && handler_.patient();
    const uint32_t word =
        protocol::may_sleep(header, doze ? protocol::Waiting::kDozes : protocol::Waiting::kSleeps);
    bool more = scan();
    {
      const std::lock_guard lock(mutex_);
      more |= !to_free_.empty() || !waiting_.empty() || stop_;
    }
    const uint64_t longest = unfinished_ ? 10 * kMillisecond : kSecond;
    if (!more) futex_wait(header.doorbell, word, doze ? kDozeNs : longest);
    protocol::woke(header);
  }
  free_slots();
  while (scan_all() && cut_) {
  }
}

}  // namespace sluice::optimizer
