#include "preload/cells/pins.h"

#include "preload/base/process.h"
#include "preload/handler/transition_inside.h"
#include "preload/session/events.h"

namespace sluice::preload {
namespace {

// Opens and pins the cells of one mapping that [begin, end) touches.
void pin_cells(Mapping& mapping, uintptr_t begin, uintptr_t end, uint32_t* first, uint32_t* last) {
  const uintptr_t base = mapping.base.load(std::memory_order_relaxed);
  const uintptr_t stop = mapping.end.load(std::memory_order_relaxed);
  if (begin < base) begin = base;
  if (end > stop) end = stop;
  *first = mapping.cell_of(begin);
  *last = mapping.cell_of(end - 1);
  for (uint32_t cell = *first; cell <= *last; ++cell) {
    const Opened opened = open_cell(mapping, cell, true);
    if (opened != Opened::kFresh && opened != Opened::kAgain) continue;
    const uintptr_t start = mapping.cell_start(cell);
    note_trip(mapping, cell, begin > start ? begin : start, opened, 0);
  }
}

}  // namespace

void Pins::add(const struct iovec* parts, size_t count) {
  if (g_high.load(std::memory_order_relaxed) == 0) return;
  // The array itself may lie in a mapping: reading it here opens its cells like any touch, and
  // pinning holds them open for the kernel.
  add(static_cast<const void*>(parts), count * sizeof *parts);
  for (size_t i = 0; i < count; ++i) add(parts[i].iov_base, parts[i].iov_len);
}

void Pins::add_string(const char* text, size_t limit) {
  const auto begin = reinterpret_cast<uintptr_t>(text);
  if (text == nullptr || !maybe_protected(begin, UINTPTR_MAX)) return;
  // Cell by cell: the search for the terminator reads only pinned memory.
  uintptr_t at = begin;
  while (limit != 0) {
    MappingRef mapping = find_mapping(at, at + 1);
    uintptr_t stop = (at | 4095) + 1;
    if (mapping) {
      const uint32_t cell = mapping->cell_of(at);
      stop = mapping->cell_start(cell) + mapping->cell_length(cell);
    }
    if (stop - at > limit) stop = at + limit;
    if (mapping) pin(at, stop);
    for (; at < stop; ++at, --limit) {
      if (*reinterpret_cast<const char*>(at) == '\0') return;
    }
  }
}

void Pins::pin(uintptr_t begin, uintptr_t end) {
  if (process_is_new()) process_after_fork();
  sys::SignalsBlocked blocked;
  generation_ = g_fork_generation.load(std::memory_order_relaxed);
  for (uint32_t from = 0;;) {
    MappingRef mapping = find_mapping(begin, end, &from);
    if (!mapping) return;
    count(protocol::ClientMetric::buffers_pinned);
    Range range = {&*mapping, 0, 0};
    mapping->pinned.fetch_add(1, std::memory_order_relaxed);
    pin_cells(*mapping, begin, end, &range.first, &range.last);
    if (count_ == kRanges) {
      sticky_ = true;  // never unpinned: these cells stay open
      continue;
    }
    ranges_[count_++] = range;
    mapping.detach();
  }
}

void Pins::release() {
  if (generation_ == g_fork_generation.load(std::memory_order_relaxed)) {
    for (uint32_t i = 0; i < count_; ++i) {
      MappingRef mapping = MappingRef::adopt(ranges_[i].mapping);
      for (uint32_t cell = ranges_[i].first; cell <= ranges_[i].last; ++cell) {
        unpin_cell(*mapping, cell);
      }
      mapping->pinned.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  count_ = 0;
}

void open_for_good(const void* buffer, size_t length) {
  const auto begin = reinterpret_cast<uintptr_t>(buffer);
  if (!maybe_protected(begin, begin + length)) return;
  sys::SignalsBlocked blocked;
  for (uint32_t from = 0;;) {
    MappingRef mapping = find_mapping(begin, begin + length, &from);
    if (!mapping) return;
    uint32_t first = 0;
    uint32_t last = 0;
    pin_cells(*mapping, begin, begin + length, &first, &last);
  }
}

}  // namespace sluice::preload
