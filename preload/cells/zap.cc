#include "preload/cells/zap.h"

#include <sys/mman.h>

#include "preload/base/sys.h"
#include "preload/cells/observed.h"
#include "preload/handler/mapping.h"

namespace sluice::preload {
namespace {

constexpr uintptr_t kFaultAround = 64 << 10;

}  // namespace

void zap_mapped(uintptr_t begin, uintptr_t end) {
  begin &= ~(kFaultAround - 1);
  end = (end + kFaultAround - 1) & ~(kFaultAround - 1);
  if (maybe_protected(begin, end)) {
    // A thread that unmaps takes this lock: while it is held the addresses belong to the mapping.
    Locked locked(g_registry_lock);
    uint32_t from = 0;
    while (const MappingRef mapping = find_mapping(begin, end, &from)) {
      const uintptr_t base = mapping->base.load(std::memory_order_relaxed);
      const uintptr_t stop = mapping->end.load(std::memory_order_relaxed);
      const uintptr_t first = begin > base ? begin : base;
      const uintptr_t last = end < stop ? end : stop;
      if (mapping->shared && first < last) sys::advise(first, last - first, MADV_DONTNEED);
    }
  }
  zap_observed(begin, end);
}

}  // namespace sluice::preload
