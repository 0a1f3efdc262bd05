// What storage's delivery costs, and what having data in memory saves. Plain data.
#pragma once

#include <cstdint>

namespace sluice::policy {

// The time that storage takes for some data.
struct Demand {
  double alone_ns = 0;  // requests x latency: one reader, one request at a time
  double link_ns = 0;   // bytes / bandwidth: any number of readers
};

// What a reader found in memory because of Sluice.
struct Hit {
  // Bytes that it was the first to read since they were fetched, and others.
  uint64_t first_bytes = 0, again_bytes = 0;
  Demand saved;
};

}  // namespace sluice::policy
