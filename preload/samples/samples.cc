#include "preload/samples/samples.h"

#include "preload/cells/mapping.h"
#include "preload/cells/observed.h"
#include "preload/session/events.h"
#include "protocol/ring.h"

namespace sluice::preload {

uint16_t sample_flags() { return t_state.samples_begun != 0 ? protocol::kFlagSample : 0; }

void sample_part(uint32_t file, uint64_t offset, uint64_t length) {
  const uint64_t key = current_sample();
  if (key != 0 && length != 0) emit_part(file, offset, length, key);
}

void sample_memory(const void* address, size_t length) {
  if (current_sample() == 0 || length == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = begin + length;
  if (const MappingRef mapping = find_mapping(begin, end)) {
    if (begin < mapping->base.load(std::memory_order_relaxed)) return;
    sample_part(mapping->file.load(std::memory_order_relaxed), mapping->offset_of(begin), length);
    return;
  }
  uint32_t file = 0;
  uint64_t offset = 0;
  if (find_observed(begin, end, &file, &offset)) sample_part(file, offset, length);
}

}  // namespace sluice::preload
