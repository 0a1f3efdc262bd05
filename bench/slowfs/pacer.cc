#include "bench/slowfs/pacer.h"

#include <algorithm>

namespace sluice::slowfs {
namespace {
// Bounds, so that a measurement on a machine that is busy just then does not become a latency
// that is too short for ever after.
constexpr uint64_t kMostTransportNs = 100'000;
constexpr double kMostLateNs = 100'000;
constexpr double kMostNsPerByte = 0.5;
constexpr double kWeight = 1.0 / 16;  // of one more sample in an average

// Two threads that move it at once lose one sample: an average does not mind.
void move(std::atomic<double>* average, double sample) {
  const double old = average->load(std::memory_order_relaxed);
  average->store(old + (sample - old) * kWeight, std::memory_order_relaxed);
}
}  // namespace

void Pacer::set_transport(uint64_t ns) { transport_ns_ = std::min(ns, kMostTransportNs); }

void Pacer::late(uint64_t ns) { move(&late_ns_, std::min(static_cast<double>(ns), kMostLateNs)); }

void Pacer::learn(uint64_t bytes, uint64_t ns) {
  if (bytes == 0) return;
  move(&ns_per_byte_,
       std::min(static_cast<double>(ns) / static_cast<double>(bytes), kMostNsPerByte));
}

uint64_t Pacer::wake_ns(uint64_t due_ns, uint64_t bytes) const {
  const double copying = static_cast<double>(bytes) * ns_per_byte_.load();
  const uint64_t early = overhead_ns() + static_cast<uint64_t>(copying);
  return due_ns > early ? due_ns - early : 0;
}

}  // namespace sluice::slowfs
