#include "cli/chunk_advice.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sluice::cli {
namespace {

constexpr double kLeastChunk = 1 << 20, kMostChunk = 32 << 20;  // bytes
constexpr double kShare = 0.9;                                  // of the time, that of the bytes
constexpr double kLeastGain = 1.2;                              // less is not worth another order
constexpr uint32_t kMostSamples = 1 << 16;

}  // namespace

ChunkAdvice advise(const BenchFiles& files, const BenchResult& result) {
  ChunkAdvice advice;
  const BenchRate& alone = result.small[best_depth(result.small)];
  const BenchRate& large = result.large[best_depth(result.large)];
  uint64_t bytes = 0;
  for (const BenchFiles::File& file : files.small) bytes += file.bytes;
  if (files.small.empty() || bytes == 0 || alone.requests == 0) return advice;
  advice.mean_bytes = std::max<uint64_t>(bytes / files.small.size(), 1);
  advice.files_per_second = static_cast<double>(alone.requests) / alone.seconds;
  advice.bandwidth = large.requests > 0 ? large.bytes_per_second() : 0;
  const double bandwidth = std::max(advice.bandwidth, alone.bytes_per_second());
  const double enough = kShare / (1 - kShare) * bandwidth / advice.files_per_second;
  const double chunk = std::clamp(enough, kLeastChunk, kMostChunk);
  const auto mean = static_cast<double>(advice.mean_bytes);
  const auto samples = static_cast<uint32_t>(std::min(std::ceil(chunk / mean), 1.0 * kMostSamples));
  const double of_chunk = std::bit_ceil(std::max(samples, 2U));
  const double seconds = 1 / advice.files_per_second + of_chunk * mean / bandwidth;
  advice.samples_per_second = of_chunk / seconds;
  if (advice.samples_per_second >= kLeastGain * advice.files_per_second) {
    advice.samples = static_cast<uint32_t>(of_chunk);
  }
  return advice;
}

}  // namespace sluice::cli
