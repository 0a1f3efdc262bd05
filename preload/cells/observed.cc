#include "preload/cells/observed.h"

#include <sys/mman.h>

#include "preload/base/lock.h"
#include "preload/base/sys.h"
#include "preload/session/events.h"

namespace sluice::preload {
namespace {

struct Observed {
  uintptr_t base, end;  // end 0: free
  uint64_t offset;
  uint32_t file;
  Entries entries;
  bool by_page;
};

constexpr uint32_t kMaxObserved = 256;
constexpr uintptr_t kPart = 64 << 20;  // bytes of a mapping that are visited under the lock at once
constinit Spinlock g_lock;
constinit Observed g_observed[kMaxObserved] = {};
constinit std::atomic<uint32_t> g_count{0};  // entries ever used; written with g_lock held

void report_mapping(const Observed& entry) {
  const int flags = protocol::kFlagObserve | (entry.by_page ? protocol::kFlagByPage : 0);
  emit_mapped(entry.file, entry.offset, entry.end - entry.base, entry.base,
              static_cast<uint16_t>(flags));
}

// Calls use(entry) for each observed mapping, under the lock.
template <typename Use>
void for_each_observed(Use use) {
  if (g_count.load(std::memory_order_relaxed) == 0) return;
  Locked locked(g_lock);
  const uint32_t used = g_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    if (g_observed[i].end != 0) use(g_observed[i]);
  }
}

}  // namespace

void observe_mapping(uint32_t file, uint64_t offset, uintptr_t base, uintptr_t end,
                     Entries entries) {
  Locked locked(g_lock);
  for (uint32_t i = 0; i < kMaxObserved; ++i) {
    if (g_observed[i].end != 0) continue;
    g_observed[i] = {base, end, offset, file, entries, false};
    if (i >= g_count.load()) g_count.store(i + 1);
    report_mapping(g_observed[i]);
    count(protocol::ClientMetric::mappings_observed);
    return;
  }
}

void forget_observed(uintptr_t begin, uintptr_t end) {
  for_each_observed([=](Observed& entry) {
    if (begin >= entry.end || end <= entry.base) return;
    emit_unmapped(entry.file, entry.base);
    entry.end = 0;
  });
}

bool find_observed(uintptr_t begin, uintptr_t end, uint32_t* file, uint64_t* offset) {
  if (g_count.load(std::memory_order_relaxed) == 0) return false;
  Locked locked(g_lock);
  const uint32_t used = g_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    const Observed& entry = g_observed[i];
    if (begin >= entry.end || end <= entry.base) continue;
    *file = entry.file;
    if (offset == nullptr) return true;
    if (begin < entry.base) return false;
    *offset = entry.offset + (begin - entry.base);
    return true;
  }
  return false;
}

void zap_observed(uintptr_t begin, uintptr_t end) {
  for_each_observed([=](const Observed& entry) {
    if (begin >= entry.end || end <= entry.base || entry.entries == Entries::kStay) return;
    const uintptr_t from = begin > entry.base ? begin : entry.base;
    const uintptr_t to = end < entry.end ? end : entry.end;
    sys::advise(from, to - from, MADV_DONTNEED);
  });
}

bool visit_observed(ObservedWalk* walk, bool (*visit)(void* context, const ObservedPart& part),
                    void* context) {
  Locked locked(g_lock);
  const uint32_t used = g_count.load(std::memory_order_relaxed);
  for (; walk->index < used; ++walk->index, walk->at = 0) {
    Observed& entry = g_observed[walk->index];
    if (entry.end == 0 || entry.entries != Entries::kWatched) continue;
    const uintptr_t begin = walk->at > entry.base ? walk->at : entry.base;
    if (begin >= entry.end) continue;
    const uintptr_t end = entry.end - begin > kPart ? begin + kPart : entry.end;
    walk->at = end;
    if (!visit(context, {entry.file, entry.offset + (begin - entry.base), begin, end})) {
      entry.entries = Entries::kStay;
    }
    return true;
  }
  return false;
}

bool any_observed() { return g_count.load(std::memory_order_relaxed) != 0; }

void advise_observed(uintptr_t begin, uintptr_t end, int advice) {
  for_each_observed([=](Observed& entry) {
    const bool by_page = advice == MADV_RANDOM;
    if (begin > entry.base || end < entry.end || entry.by_page == by_page) return;
    entry.by_page = by_page;
    report_mapping(entry);
  });
}

void renew_observed(uint32_t old, uint32_t file) {
  for_each_observed([=](Observed& entry) {
    if (entry.file != old) return;
    entry.file = file;
    report_mapping(entry);
  });
}

void observed_after_fork() {
  g_lock.reset();
  for_each_observed(report_mapping);
}

}  // namespace sluice::preload
