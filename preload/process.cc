#include "preload/process.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>

#include "preload/cells/mapping.h"
#include "preload/cells/observed.h"
#include "preload/cells/renew.h"
#include "preload/report.h"
#include "preload/samples/datasets.h"
#include "preload/samples/pages.h"
#include "preload/samples/places.h"
#include "preload/session/client.h"
#include "preload/signals/actions.h"
#include "preload/signals/mask.h"
#include "preload/stage/original.h"
#include "preload/stage/window.h"
#include "preload/startup.h"
#include "preload/sys.h"
#include "preload/thread_state.h"
#include "preload/waits.h"

namespace sluice::preload {
namespace {

SLUICE_TOUCHED_AT_START constinit std::atomic<uint32_t>* g_mark =
    nullptr;  // wiped to 0 in a fork's child
SLUICE_TOUCHED_AT_START constinit std::atomic<int> g_pid{0};
SLUICE_TOUCHED_AT_START constinit int g_root_pid = 0;

constinit std::atomic<bool> g_cloned{false};  // and stays so

// Nobody may be half way through registering a mapping when the memory is copied. Signals stay
// blocked until the lock is let go: it is a Spinlock, see lock.h. Written by the lock's holder.
constinit sys::SignalSet g_mask_before_fork = 0;

void before_fork() {
  use_all_originals();  // shared with the child: offsets, locks
  prepare_ledger();
  const sys::SignalSet mask = sys::set_mask(sys::kAllSignals);
  g_registry_lock.lock();
  g_mask_before_fork = mask;
}
void in_parent() {
  const sys::SignalSet mask = g_mask_before_fork;
  g_registry_lock.unlock();
  sys::restore_mask(mask);
}
void in_child() {
  const sys::SignalSet mask = g_mask_before_fork;
  g_registry_lock.unlock();
  if (process_is_new()) process_after_fork();
  sys::restore_mask(mask);
}

}  // namespace

void process_init() {
  g_root_pid = sys::pid();
  g_pid.store(g_root_pid, std::memory_order_relaxed);
  const long page =
      sys::call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!sys::failed(page) && sys::advise(static_cast<uintptr_t>(page), 4096, MADV_WIPEONFORK) == 0) {
    g_mark = reinterpret_cast<std::atomic<uint32_t>*>(page);
    g_mark->store(1, std::memory_order_relaxed);
  }
  pthread_atfork(before_fork, in_parent, in_child);
}

bool process_is_new() {
  return g_mark != nullptr ? g_mark->load(std::memory_order_relaxed) == 0
                           : sys::pid() != g_pid.load(std::memory_order_relaxed);
}

void process_after_fork() {
  if (g_mark != nullptr) g_mark->store(1, std::memory_order_relaxed);
  g_pid.store(sys::pid(), std::memory_order_relaxed);
  t_state.sample_tid = 0;
  windows_after_fork();
  staged_fds_after_fork();
  originals_after_fork();
  g_registry_lock.reset();
  actions_after_fork();
  mask_after_fork();
  registry_after_fork();
  session_after_fork();
  report_after_fork();
  waits_after_fork();
  observed_after_fork();
  renewal_after_fork();
  datasets_after_fork();
  places_after_fork();
  page_watch_after_fork();
}

bool in_vfork_child() {
  return sys::pid() != g_pid.load(std::memory_order_relaxed) && !process_is_new();
}

bool in_seen_vfork_child() {
  if (!t_state.vforked && !g_cloned.load(std::memory_order_relaxed)) return false;
  if (in_vfork_child()) return true;
  t_state.vforked = false;  // the parent goes on once its child has ended or executed
  return false;
}

void vfork_comes(bool lasting) {
  t_state.vforked = true;
  if (lasting) g_cloned.store(true, std::memory_order_relaxed);
}

bool is_root_process() { return g_pid.load(std::memory_order_relaxed) == g_root_pid; }

}  // namespace sluice::preload
