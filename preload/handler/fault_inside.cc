// READ BEFORE CHANGING: the fault handler. Everything reachable from here is async-signal-safe:
// system calls through preload/base/sys.h, atomics, initial-exec thread-locals. No allocation, no
// libc function that locks, no lazy initialisation, no lock that the interrupted thread may hold.
//
// Why it cannot deadlock. It waits in one place, open_cell(), for a cell in OPENING or CLOSING.
// The owner of that transition runs with every signal blocked (this handler's own mask, or
// SignalsBlocked in a hook), makes at most four memory-management system calls and finishes. The
// owner is never the thread that this handler interrupted, because that thread had signals enabled
// and faulted in code of the application. In a fork's child the owner may not exist, so
// registry_after_fork() resets cells in OPENING or CLOSING before the child's first touch, also
// when the fork bypassed libc (see below).
#include <cstdint>

#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/base/thread_state.h"
#include "preload/handler/callsites.h"
#include "preload/handler/fault.h"
#include "preload/handler/mapping.h"
#include "preload/handler/transition_inside.h"

// Last.
#include "preload/handler/poison.h"

namespace sluice::preload {
namespace {

// True if the instruction should run again: the first fault at an open cell may be a race with a
// thread that opened the cell since the fault. A second fault with the same cell version is not.
bool may_have_raced(uintptr_t address, uint64_t identity) {
  if (t_state.retry_address == address && t_state.retry_word == identity) return false;
  t_state.retry_address = address;
  t_state.retry_word = identity;
  return true;
}

bool is_checkpoint(uintptr_t address, const ucontext_t* context) {
  MappingRef mapping = find_mapping(address, address + 1);
  if (!mapping) {
    // The mapping may have been opened and removed from the registry since the fault was raised.
    const uint32_t disarms = g_disarms.load(std::memory_order_acquire);
    if (t_state.seen_disarms == disarms) return false;
    t_state.seen_disarms = disarms;
    return true;
  }
  const uint32_t cell = mapping->cell_of(address);
  const CellWord word = mapping->cells[cell].load();
  if (word.accessible()) return may_have_raced(address, word.identity());
  const Opened opened = open_cell(*mapping, cell, false);
  if (opened == Opened::kFailed) return false;
  if (opened == Opened::kAlready) return true;
  note_trip(*mapping, cell, address, opened,
            static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]));
  if (g_settings.callsites) {
    record_callsite(context, mapping->cell_start(cell) + mapping->cell_length(cell) - address);
  }
  return true;
}

}  // namespace

void fault_handler(int, siginfo_t* info, void* raw_context) {
  auto* context = static_cast<ucontext_t*>(raw_context);
  // After a fork by raw system call no hook ran in the child. (A vfork child shares the parent's
  // memory: opening a cell there is correct for both.)
  if (process_is_new()) process_after_fork();
  if (info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR) {
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    if (is_checkpoint(address, context)) return;
  }
  forward_fault(info, context);
}

}  // namespace sluice::preload
