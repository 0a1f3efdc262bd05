// record_callsite() runs inside the fault handler: it uses a static table and system calls only.
#include "preload/handler/callsites.h"

#include <sys/uio.h>

#include <atomic>

#include "preload/base/sys.h"

// Last.
#include "preload/handler/poison.h"

namespace sluice::preload {
namespace {

constexpr uint32_t kPlaces = 1024;  // power of two

struct Place {
  std::atomic<uintptr_t> pc{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> times{0};
  uintptr_t callers[kCallsiteDepth];  // writer: the thread that claimed pc
};
constinit Place g_places[kPlaces] = {};

// Reads frame pointer and return address by a system call, so that an address that is not readable
// gives an error instead of a fault.
bool read_frame(uintptr_t frame, uintptr_t (&out)[2]) {
  struct iovec local = {out, sizeof out};
  struct iovec remote = {reinterpret_cast<void*>(frame), sizeof out};
  return sys::call(SYS_process_vm_readv, sys::pid(), sys::word(&local), 1, sys::word(&remote), 1,
                   0) == static_cast<long>(sizeof out);
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

size_t most_read_callsites(CallsiteCount* out, size_t room) {
  size_t count = 0;
  for (const Place& place : g_places) {
    const CallsiteCount one = {place.pc.load(), place.bytes.load(), place.times.load(),
                               place.callers};
    if (one.pc == 0) continue;
    size_t at = count < room ? count++ : room;
    for (; at > 0 && out[at - 1].bytes < one.bytes; --at) {
      if (at < room) out[at] = out[at - 1];
    }
    if (at < room) out[at] = one;
  }
  return count;
}

}  // namespace sluice::preload
