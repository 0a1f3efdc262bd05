// Reached from the fault handler: loads, stores, and a futex wake.
#include "preload/session/events.h"

#include <linux/futex.h>

#include "preload/base/start_page.h"
#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/session/connection.h"
#include "protocol/ring_io.h"

namespace sluice::preload {

SLUICE_TOUCHED_AT_START constinit std::atomic<bool> g_something_to_report{false};

namespace {

enum class Wake : uint8_t { kAlways, kQuietly };  // see ring_io.h

void emit(protocol::EventData data, Wake wake = Wake::kAlways) {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  if (connection == nullptr) return;
  protocol::Slot* slot = connection->slot.load(std::memory_order_acquire);
  // An id of an earlier session may be another file's in this one.
  if (slot == nullptr || data.file >> kFileIdBits != connection->number) return;
  data.file &= (1U << kFileIdBits) - 1;
  data.time_ns = sys::now_ns();
  const bool of_sample = data.kind >= protocol::EventKind::kSampleBegin;
  data.tid =
      of_sample && t_state.sample_tid != 0 ? t_state.sample_tid : static_cast<uint32_t>(sys::tid());
  if (!protocol::push(*slot, data)) return;
  protocol::Header& header = connection->shared->header;
  if (wake == Wake::kAlways ? protocol::ring_doorbell(header)
                            : protocol::ring_doorbell_quietly(header, *slot)) {
    sys::call(SYS_futex, sys::word(&header.doorbell), FUTEX_WAKE, 1);
  }
}

}  // namespace

void emit_trip(uint32_t file, uint64_t offset, uint64_t length, uintptr_t pc, uint16_t flags) {
  emit({.offset = offset,
        .length = length,
        .address = pc,
        .file = file,
        .kind = protocol::EventKind::kTrip,
        .flags = flags});
}

void emit_read(uint32_t file, uint64_t offset, uint64_t length, uint16_t flags) {
  emit({.offset = offset,
        .length = length,
        .file = file,
        .kind = protocol::EventKind::kRead,
        .flags = flags});
}

void emit_mapped(uint32_t file, uint64_t offset, uint64_t length, uintptr_t address,
                 uint16_t flags) {
  emit({.offset = offset,
        .length = length,
        .address = address,
        .file = file,
        .kind = protocol::EventKind::kMapped,
        .flags = flags});
}

void emit_unmapped(uint32_t file, uintptr_t address) {
  emit({.address = address, .file = file, .kind = protocol::EventKind::kUnmapped});
}

void emit_zapped(uint32_t file, uint64_t offset, uint64_t length) {
  emit({.offset = offset, .length = length, .file = file, .kind = protocol::EventKind::kZapped});
}

void emit_random(uint32_t file) { emit({.file = file, .kind = protocol::EventKind::kRandom}); }

void emit_closed(uint32_t file) { emit({.file = file, .kind = protocol::EventKind::kClosed}); }

void emit_sample_begin(uint32_t dataset, uint64_t key) {
  emit({.address = key, .file = dataset, .kind = protocol::EventKind::kSampleBegin},
       Wake::kQuietly);
}

void emit_sample_end(uint32_t dataset, uint64_t key, uint32_t given, uint32_t left) {
  emit({.offset = given,
        .length = left,
        .address = key,
        .file = dataset,
        .kind = protocol::EventKind::kSampleEnd},
       Wake::kQuietly);
}

void emit_part(uint32_t file, uint64_t offset, uint64_t length, uint64_t key) {
  emit({.offset = offset,
        .length = length,
        .address = key,
        .file = file,
        .kind = protocol::EventKind::kSamplePart},
       Wake::kQuietly);
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
