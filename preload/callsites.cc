// record_callsite runs inside the fault handler: a table in static memory, system calls, no more.
#include "preload/callsites.h"

#include <dlfcn.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "preload/log.h"
#include "preload/sys.h"

namespace sluice::preload {
namespace {

constexpr uint32_t kPlaces = 1024;  // power of two
constexpr int kDepth = 8;

struct Place {
  std::atomic<uintptr_t> pc{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> times{0};
  uintptr_t callers[kDepth];  // writer: who claimed pc
};
constinit Place g_places[kPlaces] = {};

// Frame pointer and return address, read by the kernel: an address that is no frame is an error
// and not a fault.
bool read_frame(uintptr_t frame, uintptr_t (&out)[2]) {
  struct iovec local = {out, sizeof out};
  struct iovec remote = {reinterpret_cast<void*>(frame), sizeof out};
  return sys::call(SYS_process_vm_readv, sys::pid(), sys::word(&local), 1, sys::word(&remote), 1,
                   0) == static_cast<long>(sizeof out);
}

void name_of(uintptr_t address, char* out, size_t size) {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_fname == nullptr) {
    snprintf(out, size, "0x%lx", static_cast<unsigned long>(address));
    return;
  }
  const bool named = info.dli_sname != nullptr;
  const auto start = reinterpret_cast<uintptr_t>(named ? info.dli_saddr : info.dli_fbase);
  snprintf(out, size, "%s(%s+0x%lx)", info.dli_fname, named ? info.dli_sname : "",
           static_cast<unsigned long>(address - start));
}

}  // namespace

void record_callsite(const ucontext_t* context, uint64_t bytes) {
  const auto pc = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
  for (uint32_t probe = 0; probe < kPlaces; ++probe) {
    Place& place = g_places[((pc >> 2) * 0x9E3779B1U + probe) % kPlaces];
    uintptr_t owner = 0;
    if (place.pc.compare_exchange_strong(owner, pc, std::memory_order_relaxed)) {
      auto frame = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RBP]);
      for (uintptr_t& caller : place.callers) {
        uintptr_t words[2];
        if (frame == 0 || !read_frame(frame, words)) break;
        caller = words[1];
        if (words[0] <= frame) break;  // stacks grow down: a frame's caller lies above it
        frame = words[0];
      }
    } else if (owner != pc) {
      continue;
    }
    place.bytes.fetch_add(bytes, std::memory_order_relaxed);
    place.times.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

void report_callsites() {
  if (!g_settings.callsites) return;
  Place* best[kPlaces];
  uint32_t count = 0;
  for (Place& place : g_places) {
    if (place.pc.load() != 0) best[count++] = &place;
  }
  std::sort(best, best + count,
            [](const Place* a, const Place* b) { return a->bytes.load() > b->bytes.load(); });
  for (uint32_t i = 0; i < count && i < 10; ++i) {
    char name[300];
    name_of(best[i]->pc.load(), name, sizeof name);
    say(LogLevel::kWarn, "callsite %.1f MB in %llu touches: %s",
        static_cast<double>(best[i]->bytes.load()) / 1e6,
        static_cast<unsigned long long>(best[i]->times.load()), name);
    for (const uintptr_t caller : best[i]->callers) {
      if (caller == 0) break;
      name_of(caller, name, sizeof name);
      say(LogLevel::kWarn, "  called from %s", name);
    }
  }
}

}  // namespace sluice::preload
