// What it takes to answer in time. A caller is to see the latency of the settings, but its call
// also pays for two context switches into the file system and back, for a sleeper that wakes some
// microseconds late, and for copying the bytes: 0.5 ms would become 0.58. The pacer learns these
// costs and lets the sleeper get up that much earlier. It changes no rate: the service's times
// are what they are, and answers are given a little before them.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::slowfs {

class Pacer {
 public:
  // What the way in and out costs, measured once mounted, before anybody calls.
  void set_transport(uint64_t ns);

  // A sleeper got up `ns` late. Any thread.
  void late(uint64_t ns);
  uint64_t lateness_ns() const { return static_cast<uint64_t>(late_ns_.load()); }

  // All that a call costs besides its latency and its bytes.
  uint64_t overhead_ns() const { return transport_ns_.load() + lateness_ns(); }

  // An answer of `bytes` took `ns` to hand over. Any thread.
  void learn(uint64_t bytes, uint64_t ns);

  // When to get up for an answer of `bytes` that is due at `due_ns`. Any thread.
  uint64_t wake_ns(uint64_t due_ns, uint64_t bytes) const;

 private:
  std::atomic<uint64_t> transport_ns_{0};
  std::atomic<double> late_ns_{0};      // a moving average
  std::atomic<double> ns_per_byte_{0};  // of handing over; a moving average
};

}  // namespace sluice::slowfs
