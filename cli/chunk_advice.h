// How many samples a chunk should have on some storage. Pure.
#pragma once

#include <cstdint>

#include "cli/bench_storage.h"

namespace sluice::cli {

struct ChunkAdvice {
  uint64_t mean_bytes = 0;        // of a file
  double files_per_second = 0;    // one by one, as many at a time as is best
  double bandwidth = 0;           // bytes a second of large requests; 0: there was no large file
  uint32_t samples = 0;           // of a chunk; 0: chunks bring nothing
  double samples_per_second = 0;  // in chunks of so many
};

// A chunk takes a request and the time of its bytes: it is so large that nine tenths of the time
// are those of the bytes, and at least 1 MiB. Without large files to measure, the bandwidth is
// taken to be no more than that of small ones, and a chunk is 1 MiB.
ChunkAdvice advise(const BenchFiles& files, const BenchResult& result);

}  // namespace sluice::cli
