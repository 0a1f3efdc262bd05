// Reached from the fault handler: loads, stores, and a futex wake.
#include "preload/session/events.h"

#include <linux/futex.h>

#include "preload/base/start_page.h"
#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/session/connection.h"
#include "protocol/ring_io.h"

namespace sluice::preload {

using protocol::EventKind;

SLUICE_TOUCHED_AT_START constinit std::atomic<bool> g_something_to_report{false};

namespace {

void emit(EventKind kind, uint32_t file, uint64_t offset = 0, uint64_t length = 0,
          uint64_t address = 0, uint16_t flags = 0) {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  if (connection == nullptr) return;
  protocol::Slot* slot = connection->slot.load(std::memory_order_acquire);
  // An id of an earlier session may be another file's in this one.
  if (slot == nullptr || file >> kFileIdBits != connection->number) return;
  const bool of_sample = kind >= EventKind::kSampleBegin;
  const protocol::EventData data = {.offset = offset,
                                    .length = length,
                                    .time_ns = sys::now_ns(),
                                    .address = address,
                                    .file = file & ((1U << kFileIdBits) - 1),
                                    .tid = of_sample && t_state.sample_tid != 0
                                               ? t_state.sample_tid
                                               : static_cast<uint32_t>(sys::tid()),
                                    .kind = kind,
                                    .flags = flags};
  if (!protocol::push(*slot, data)) return;
  protocol::Header& header = connection->shared->header;
  if (of_sample ? protocol::ring_doorbell_quietly(header, *slot)
                : protocol::ring_doorbell(header)) {
    sys::call(SYS_futex, sys::word(&header.doorbell), FUTEX_WAKE, 1);
  }
}

}  // namespace

void emit_trip(uint32_t file, uint64_t offset, uint64_t length, uintptr_t pc, uint16_t flags) {
  emit(EventKind::kTrip, file, offset, length, pc, flags);
}
void emit_read(uint32_t file, uint64_t offset, uint64_t length, uint16_t flags) {
  emit(EventKind::kRead, file, offset, length, 0, flags);
}
void emit_mapped(uint32_t file, uint64_t offset, uint64_t length, uintptr_t address,
                 uint16_t flags) {
  emit(EventKind::kMapped, file, offset, length, address, flags);
}
void emit_unmapped(uint32_t file, uintptr_t address) {
  emit(EventKind::kUnmapped, file, 0, 0, address);
}
void emit_zapped(uint32_t file, uint64_t offset, uint64_t length) {
  emit(EventKind::kZapped, file, offset, length);
}
void emit_random(uint32_t file) { emit(EventKind::kRandom, file); }
void emit_sample_begin(uint32_t dataset, uint64_t key) {
  emit(EventKind::kSampleBegin, dataset, 0, 0, key);
}
void emit_sample_end(uint32_t dataset, uint64_t key, uint32_t given, uint32_t left) {
  emit(EventKind::kSampleEnd, dataset, given, left, key);
}
void emit_part(uint32_t file, uint64_t offset, uint64_t length, uint64_t key) {
  emit(EventKind::kSamplePart, file, offset, length, key);
}

constinit std::atomic<uint64_t> g_unsent_metrics[protocol::kClientMetricCount] = {};

void count(protocol::ClientMetric metric, uint64_t by) {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  protocol::Slot* slot =
      connection != nullptr ? connection->slot.load(std::memory_order_acquire) : nullptr;
  if (slot != nullptr) {
    protocol::count(*slot, metric, by);
  } else {
    g_unsent_metrics[static_cast<uint32_t>(metric)].fetch_add(by, std::memory_order_relaxed);
    g_something_to_report.store(true, std::memory_order_relaxed);
  }
}

}  // namespace sluice::preload
