// One hypothesis about how a job finds the record of sample i, and the hypotheses that are worth
// trying. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "policy/samples/record_list.h"

namespace sluice::policy {

struct KeyScheme {
  enum class Kind : uint8_t {
    kRecord,   // record i + base in key order
    kDecimal,  // prefix, i + base in decimal with at least `width` digits, suffix
    kBig,      // i + base as an integer of `width` bytes, the most significant first
    kLittle,   // likewise, the least significant first
    kAlways,   // record `base`, whatever the sample
  };
  Kind kind = Kind::kRecord;
  uint64_t base = 0;
  uint32_t width = 0;
  std::string prefix, suffix;

  bool operator<(const KeyScheme& other) const {
    return std::tie(kind, base, width, prefix, suffix) <
           std::tie(other.kind, other.base, other.width, other.prefix, other.suffix);
  }

  // The sample among [0, samples) to which the record belongs; nullopt: none, or (kAlways) all.
  std::optional<uint64_t> sample_of(const RecordList& records, uint32_t record,
                                    uint64_t samples) const;
  // For the log, one short line: "key image-%09d from 1", "record i + 2". Bytes that are not
  // printable are escaped.
  std::string name(const RecordList& records) const;
};

// Sample `index` was observed to read record `record`.
struct SeenRecord {
  uint64_t index = 0;
  uint32_t record = 0;
};

// The hypotheses that explain all of `seen`, without duplicates in effect. Those by key come first,
// those by place in the key order last. REQUIRES: `seen` is not empty, its indices are below
// `samples`.
std::vector<KeyScheme> schemes_for(const RecordList& records, uint64_t samples,
                                   std::span<const SeenRecord> seen);

}  // namespace sluice::policy
