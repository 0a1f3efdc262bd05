// How fast a folder's disk reads, measured with a log's own files and requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policy/chunks/log_choice.h"

namespace sluice::optimizer {

struct MeasuredDisk {
  policy::DiskRates rates;
  uint64_t room = 0;  // bytes that this user may take, but for 5 % of the file system
};

// Writes kMeasuredBytes there, which are gone afterwards, whatever ends the process, and reads them
// for 0.6 s. Blocks in the file system, for as long as writing takes; any thread. nullopt:
// the file system has no room to spare, reads nothing past the page cache, or fails.
std::optional<MeasuredDisk> measure_disk(const std::string& folder);

inline constexpr uint64_t kMeasuredBytes = 64 << 20;

}  // namespace sluice::optimizer
