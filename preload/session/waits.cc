// Reached from the fault handler: loads, stores, two system calls. The lock below is taken with
// every signal blocked, is held for some hundred nanoseconds, and is seized from an owner that
// was killed, so a handler waits for it only while another thread or process holds it.
#include "preload/session/waits.h"

#include <sys/resource.h>
#include <sys/time.h>

#include <atomic>

#include "preload/base/process.h"
#include "preload/base/start_page.h"
#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/base/wait_union.h"
#include "preload/session/events.h"

namespace sluice::preload {
namespace {

constexpr uint64_t kLostLockNs = 20'000'000;

struct Waits {
  std::atomic<uint64_t> locked_ns;  // since when; 0: free
  WaitUnion all;
};

constinit Waits g_own = {};
SLUICE_TOUCHED_AT_START constinit std::atomic<Waits*> g_waits{&g_own};
constinit std::atomic<bool> g_for_others{false};

void lock(Waits& waits) {
  for (;;) {
    const uint64_t now = sys::now_ns();
    uint64_t since = 0;
    if (waits.locked_ns.compare_exchange_strong(since, now, std::memory_order_acquire)) return;
    const bool lost = now > since && now - since > kLostLockNs;
    if (lost && waits.locked_ns.compare_exchange_strong(since, now, std::memory_order_acquire)) {
      return;
    }
    sys::call(SYS_sched_yield);
  }
}

uint64_t ns_of(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_usec) * 1000;
}

}  // namespace

void note_wait(uint64_t begin_ns, uint64_t end_ns) {
  if (in_vfork_child()) return;
  if (process_is_new()) process_after_fork();
  uint64_t added = 0;
  {
    const sys::SignalsBlocked blocked;
    Waits& waits = *g_waits.load(std::memory_order_acquire);
    lock(waits);
    added = waits.all.add(begin_ns, end_ns);
    waits.locked_ns.store(0, std::memory_order_release);
  }
  if (added != 0) count(protocol::ClientMetric::waited_ns, added);
}

void loop_waited(uint64_t ns) {
  count(protocol::ClientMetric::loop_waits);
  const uint64_t now = sys::now_ns();
  if (ns != 0 && ns < now) note_wait(now - ns, now);
}

void reads_for_others() { g_for_others.store(true, std::memory_order_relaxed); }
bool reads_for_others_now() { return g_for_others.load(std::memory_order_relaxed); }

void note_faults() {
  if (reads_for_others_now()) return;
  struct rusage usage;
  if (sys::failed(sys::call(SYS_getrusage, RUSAGE_THREAD, sys::word(&usage)))) return;
  const uint64_t now = sys::now_ns();
  const uint64_t ran = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
  const auto faults = static_cast<uint64_t>(usage.ru_majflt);
  const FaultMark before = t_state.faults;
  t_state.faults = {now, ran, faults};
  if (before.time_ns == 0 || faults <= before.faults || ran < before.ran_ns) return;
  const uint64_t wall = now - before.time_ns;
  const uint64_t off = wall - (ran - before.ran_ns < wall ? ran - before.ran_ns : wall);
  if (off != 0) note_wait(now - off, now);
}

void waits_after_fork() { t_state.faults = {}; }

size_t waits_size() { return sizeof(Waits); }

void share_waits(void* shared) {
  // Waits before this fork cannot overlap later ones, so the old union is not copied.
  g_waits.store(static_cast<Waits*>(shared), std::memory_order_release);
}

}  // namespace sluice::preload
