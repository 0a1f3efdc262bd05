#include "preload/base/process.h"

#include <sys/mman.h>

#include <atomic>

#include "preload/base/start_page.h"
#include "preload/base/sys.h"
#include "preload/base/thread_state.h"

namespace sluice::preload {
namespace {

SLUICE_TOUCHED_AT_START constinit std::atomic<uint32_t>* g_mark =
    nullptr;  // wiped to 0 in a fork's child
SLUICE_TOUCHED_AT_START constinit std::atomic<int> g_pid{0};
SLUICE_TOUCHED_AT_START constinit int g_root_pid = 0;

constinit std::atomic<bool> g_cloned{false};  // never reset

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
}

bool process_is_new() {
  return g_mark != nullptr ? g_mark->load(std::memory_order_relaxed) == 0
                           : sys::pid() != g_pid.load(std::memory_order_relaxed);
}

void adopt_process() {
  if (g_mark != nullptr) g_mark->store(1, std::memory_order_relaxed);
  g_pid.store(sys::pid(), std::memory_order_relaxed);
  t_state.sample_tid = 0;
}

bool in_vfork_child() {
  return sys::pid() != g_pid.load(std::memory_order_relaxed) && !process_is_new();
}

bool in_seen_vfork_child() {
  if (!t_state.vforked && !g_cloned.load(std::memory_order_relaxed)) return false;
  if (in_vfork_child()) return true;
  t_state.vforked = false;  // the parent runs again, so its child has ended or executed
  return false;
}

void before_vfork(bool lasting) {
  t_state.vforked = true;
  if (lasting) g_cloned.store(true, std::memory_order_relaxed);
}

bool is_root_process() { return g_pid.load(std::memory_order_relaxed) == g_root_pid; }

}  // namespace sluice::preload
