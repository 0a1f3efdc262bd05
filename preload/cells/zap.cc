#include "preload/cells/zap.h"

#include <sys/mman.h>

#include "preload/cells/mapping.h"
#include "preload/cells/observed.h"
#include "preload/sys.h"

namespace sluice::preload {
namespace {

constexpr uintptr_t kFaultAround = 64 << 10;

bool zap(void* bounds, const ObservedPart& part) {
  const auto* wanted = static_cast<const uintptr_t*>(bounds);
  const uintptr_t begin = part.begin > wanted[0] ? part.begin : wanted[0];
  const uintptr_t end = part.end < wanted[1] ? part.end : wanted[1];
  return begin >= end || sys::advise(begin, end - begin, MADV_DONTNEED) == 0;
}

}  // namespace

void zap_mapped(uintptr_t begin, uintptr_t end) {
  uintptr_t bounds[2] = {begin & ~(kFaultAround - 1),
                         (end + kFaultAround - 1) & ~(kFaultAround - 1)};
  if (maybe_protected(begin, end)) {
    // Whoever unmaps it waits for the lock: until then the addresses are the mapping's.
    Locked locked(g_registry_lock);
    const MappingRef mapping = find_mapping(begin, end);
    if (!mapping || !mapping->shared) return;
    zap(bounds, {0, 0, mapping->base.load(std::memory_order_relaxed),
                 mapping->end.load(std::memory_order_relaxed)});
    return;
  }
  if (!any_observed()) return;
  ObservedWalk walk = {};
  while (visit_observed(&walk, zap, bounds)) {
  }
}

}  // namespace sluice::preload
