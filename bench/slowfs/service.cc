#include "bench/slowfs/service.h"

#include <algorithm>
#include <cmath>

namespace sluice::slowfs {

Service::Service(uint32_t parallel, double bytes_per_second, double requests_per_second)
    : parallel_(parallel),
      ns_per_byte_(bytes_per_second > 0 ? 1e9 / bytes_per_second : 0),
      ns_per_request_(requests_per_second > 0 ? 1e9 / requests_per_second : 0) {}

uint64_t Service::counted() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

uint64_t Service::admit(uint64_t now_ns, uint64_t latency_ns, uint64_t bytes, bool counted) {
  const std::lock_guard lock(mutex_);
  // Doubles hold nanoseconds since boot exactly for 104 days, and to a few ns for decades.
  double start = static_cast<double>(now_ns);
  if (counted) {
    ++counted_;
    start = std::max(start, next_request_ns_);
    next_request_ns_ = start + ns_per_request_;
  }
  if (parallel_ > 0 && places_.size() >= parallel_) {
    start = std::max(start, places_.top());
    places_.pop();
  }
  double end = start + static_cast<double>(latency_ns);
  if (bytes > 0 && ns_per_byte_ > 0) {
    link_free_ns_ = std::max(link_free_ns_, end) + static_cast<double>(bytes) * ns_per_byte_;
    end = link_free_ns_;
  }
  if (parallel_ > 0) places_.push(end);
  return static_cast<uint64_t>(std::llround(end));
}

}  // namespace sluice::slowfs
