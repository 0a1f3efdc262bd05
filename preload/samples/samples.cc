#include "preload/samples/samples.h"

#include <sys/mman.h>

#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/cells/observed.h"
#include "preload/handler/mapping.h"
#include "preload/session/client.h"
#include "preload/session/events.h"
#include "protocol/page.h"
#include "protocol/ring.h"

namespace sluice::preload {
namespace {

// A record is about to be read. If it is not in memory yet, the kernel would read around each
// touched page of it, 128 KiB at a time: half of that is not needed, which takes twice the time on
// a slow link.
void handed_out(uintptr_t begin, size_t length) {
  if (length > kPage && g_settings.prefetch) {
    sys::advise(begin & ~(kPage - 1), length + begin % kPage, MADV_WILLNEED);
  }
  constexpr uint32_t kRoom = sizeof t_state.touched / sizeof *t_state.touched;
  if (t_state.touched_count == kRoom) release_sample_memory();
  t_state.touched[t_state.touched_count][0] = begin;
  t_state.touched[t_state.touched_count++][1] = begin + length;
}

constexpr uintptr_t kFaultAround = 64 << 10;

// Zaps the page-table entries of [begin, end), which was read, in followed, shared mappings, so
// that its pages can be evicted from the page cache: the kernel evicts no page that a process maps.
// The next touch maps the page again. Rounded outward to 64 KiB: a touch also maps all cached pages
// within the same 64 KiB (fault-around). An munmap() of the process waits meanwhile.
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

}  // namespace

void sample_part(uint32_t file, uint64_t offset, uint64_t length) {
  const uint64_t key = current_sample();
  if (key != 0 && length != 0) emit_part(file, offset, length, key);
}

void sample_memory(const void* address, size_t length) {
  if (t_state.samples_begun == 0 || length == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = begin + length;
  if (const MappingRef mapping = find_mapping(begin, end)) {
    if (begin < mapping->base.load(std::memory_order_relaxed)) return;
    handed_out(begin, length);
    sample_part(mapping->file.load(std::memory_order_relaxed), mapping->offset_of(begin), length);
    return;
  }
  uint32_t file = 0;
  uint64_t offset = 0;
  if (!find_observed(begin, end, &file, &offset)) return;
  handed_out(begin, length);
  sample_part(file, offset, length);
}

void release_sample_memory() {
  const uint32_t count = t_state.touched_count;
  if (count == 0) return;
  t_state.touched_count = 0;
  if (!pages_wanted()) return;
  if (process_is_new()) process_after_fork();
  for (uint32_t i = 0; i < count; ++i) zap_mapped(t_state.touched[i][0], t_state.touched[i][1]);
}

}  // namespace sluice::preload
