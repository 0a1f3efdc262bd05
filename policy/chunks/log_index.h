// Where the samples of one epoch lie in a log: chunk after chunk in the order in which they will be
// read (LCache, section III-C: the MetaIndex). Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

// A range of a log, in bytes.
struct LogRange {
  uint64_t offset = 0, length = 0;
  bool operator==(const LogRange&) const = default;
};

// The blocks that the range has a part in.
LogRange whole_blocks(LogRange range);
// Sorts them, and joins what is not further apart than `gap` bytes.
void join(std::vector<LogRange>* ranges, uint64_t gap);

// Chunks begin at multiples of a block, so that a chunk is read with O_DIRECT, and released, by
// itself. 16 bytes a sample, with what the caller's `bytes` take 20.
class LogIndex {
 public:
  static constexpr uint64_t kBlock = 4096;

  LogIndex() = default;
  // Samples in the order of their reads, cut into chunks of `chunk_samples`; what comes again is
  // left out. `bytes` by sample; it outlives this, and those of a sample that has a place do not
  // change. REQUIRES: chunk_samples > 0, and every sample has its bytes.
  LogIndex(std::span<const SampleId> order, std::span<const uint32_t> bytes,
           uint32_t chunk_samples);
  // Gives the sample the place behind all others. REQUIRES: it has none, and has its bytes.
  void append(SampleId sample);

  uint32_t samples() const { return static_cast<uint32_t>(order_.size()); }
  uint32_t chunks() const { return static_cast<uint32_t>(starts_.size()); }
  uint32_t chunk_of(SampleId sample) const { return position_[sample] / chunk_samples_; }
  std::span<const SampleId> members(uint32_t chunk) const;
  LogRange range(uint32_t chunk) const;
  uint64_t length() const;  // of the whole log

  // nullopt: the epoch does not read the sample.
  std::optional<LogRange> place(SampleId sample) const;

  bool is_written(SampleId sample) const { return has(sample) && written_[position_[sample]]; }
  // REQUIRES of these: place() is known.
  void set_written(SampleId sample, bool written) { written_[position_[sample]] = written; }
  // The blocks that hold a part of this sample and of no other one that is written: those that the
  // log's file gains when it is written, and may lose when it is not wanted any more.
  LogRange own_blocks(SampleId sample) const;

  uint64_t footprint() const;  // bytes, without `bytes`

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  bool has(SampleId sample) const {
    return sample < position_.size() && position_[sample] != kNowhere;
  }
  uint64_t offset(uint32_t position) const {
    return starts_[position / chunk_samples_] + within_[position];
  }
  uint64_t end(uint32_t position) const { return offset(position) + bytes_[order_[position]]; }

  std::span<const uint32_t> bytes_;
  uint32_t chunk_samples_ = 1;
  std::vector<SampleId> order_;
  std::vector<uint32_t> position_;  // by sample: in order_
  std::vector<uint32_t> within_;    // by position: the first byte in its chunk
  std::vector<uint64_t> starts_;    // by chunk
  uint64_t length_ = 0;
  std::vector<bool> written_;  // by position
};

}  // namespace sluice::policy
