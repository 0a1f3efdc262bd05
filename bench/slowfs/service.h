// The imagined storage: when would it have answered? Pure arithmetic on times, so that nothing is
// lost to late wake-ups: a request's end is fixed the moment it arrives, and rates are exact in
// the long run whatever the machine does in between.
//
//   arrives -> its turn among the requests of a second -> waits for one of `parallel` places
//           -> latency -> its turn on the link -> answered
//
// Requests take places, and then the link, in the order in which they arrive. Reads share one
// latency, so arrival order is also the order in which they reach the link.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <vector>

namespace sluice::slowfs {

class Service {
 public:
  // `parallel`: places; `bytes_per_second`: the link; of each 0 is no limit.
  Service(uint32_t parallel, double bytes_per_second, double requests_per_second = 0);

  // A request that arrives at `now_ns`, takes `latency_ns` and then moves `bytes` over the link.
  // Returns when it is answered, in ns on the same clock, never before now_ns + latency_ns. Not
  // `counted`: it belongs to one that was counted, and is none of the requests of a second. Any
  // thread. REQUIRES: now_ns does not go back by more than callers race for the lock.
  uint64_t admit(uint64_t now_ns, uint64_t latency_ns, uint64_t bytes, bool counted = true);
  uint64_t counted() const;

 private:
  const uint32_t parallel_;
  const double ns_per_byte_, ns_per_request_;
  mutable std::mutex mutex_;
  uint64_t counted_ = 0;
  double next_request_ns_ = 0;
  double link_free_ns_ = 0;  // when the link has sent all that was admitted
  // When each taken place is free again, earliest on top.
  std::priority_queue<double, std::vector<double>, std::greater<>> places_;
};

}  // namespace sluice::slowfs
