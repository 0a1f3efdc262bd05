// What planning asks of the orders of samples, and what it answers. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/samples/extent.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// An extent that should be in memory, for a session's sample.
struct WantedExtent {
  Extent extent;
  SessionId session{};
  DatasetId dataset{};
  uint32_t epoch = 0, sample = 0;
  uint64_t position = 0;  // of the sample in the epoch
  uint64_t order = 0;     // samples of the epoch
};

// What is done about a coming sample's extent. kLater: there is no room yet. kHere: it has a copy,
// and no request is needed for it. kNever: it is in memory otherwise, in flight, or must not be
// fetched. kTooLarge: there will never be room.
enum class FetchVerdict : uint8_t { kTake, kLater, kHere, kNever, kTooLarge };

// Whole files that are read next, each as often as it will be. `order`: nearest first, those of
// samples that are being read before all. `readers`: of samples that are being read, and of those
// that were handed out and judged and have not begun: the coming readers that copies know of.
struct UpcomingFiles {
  std::vector<SampleFileId> order, readers;
};

}  // namespace sluice::policy
