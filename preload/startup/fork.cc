// Resets the library's state in a fork's child. process_after_fork() is also reached from the fault
// handler, if no hook saw the fork: all functions that it calls are async-signal-safe.
#include <pthread.h>

#include "preload/base/process.h"
#include "preload/base/sys.h"
#include "preload/cells/observed.h"
#include "preload/cells/renew.h"
#include "preload/files/started.h"
#include "preload/handler/actions.h"
#include "preload/handler/mapping.h"
#include "preload/handler/mask.h"
#include "preload/report/report.h"
#include "preload/samples/datasets.h"
#include "preload/samples/pages.h"
#include "preload/samples/places.h"
#include "preload/session/client.h"
#include "preload/session/waits.h"
#include "preload/stage/original.h"
#include "preload/stage/window.h"
#include "preload/startup/startup.h"

namespace sluice::preload {
namespace {

// No thread may be registering a mapping when the memory is copied. Signals stay blocked until the
// lock is released: it is a Spinlock, see lock.h. Written by the lock's holder.
constinit sys::SignalSet g_mask_before_fork = 0;

void before_fork() {
  use_all_originals();  // offsets and locks are shared with the child
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

void watch_forks() { pthread_atfork(before_fork, in_parent, in_child); }

void process_after_fork() {
  adopt_process();
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
  start_after_fork();
  page_watch_after_fork();
}

}  // namespace sluice::preload
