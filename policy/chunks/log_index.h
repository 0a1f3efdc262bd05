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

// Which chunk a sample is in follows from the order, and where it lies in its chunk from when it
// was placed: a chunk is read whole, so its members may lie in any order, and their sizes need not
// be known ahead, as the paper's are. Chunks begin at multiples of a block, so that a chunk is read
// with O_DIRECT, and released, by itself. 16 bytes a sample, with what the caller's `bytes`
// take 20.
class LogIndex {
 public:
  static constexpr uint64_t kBlock = 4096;
  // Of a sample whose size is not known: its room in its chunk, times what is usual, and what it is
  // of `most`, this share less, so that nothing that has room is left out.
  static constexpr uint64_t kUnknownRoom = 3, kUnknownLess = 4;

  struct Layout {
    uint32_t chunk_samples = 1;  // at least 1
    uint64_t usual = 0;          // bytes of a sample whose size is not known, about
    uint64_t most = UINT64_MAX;  // bytes of all samples; what the order has beyond is left out
  };

  LogIndex() = default;
  // Samples in the order of their reads, cut into chunks; what comes again is left out. `bytes` by
  // sample, 0 where they are not known; it outlives this, and those of a sample that has a place do
  // not change.
  LogIndex(std::span<const SampleId> order, std::span<const uint32_t> bytes, Layout layout);

  uint32_t samples() const { return samples_; }
  uint32_t chunks() const { return static_cast<uint32_t>(chunks_.size()); }
  bool has(SampleId sample) const {
    return sample < position_.size() && position_[sample] != kNowhere;
  }
  // REQUIRES: has() it.
  uint32_t chunk_of(SampleId sample) const { return position_[sample] / layout_.chunk_samples; }
  // Those that have a place come first, as they lie.
  std::span<const SampleId> members(uint32_t chunk) const;

  // REQUIRES of these: the sample's bytes are known.
  // Adds it behind all others, with a place, in a chunk that the order does not have. REQUIRES: the
  // log does not have it.
  void append(SampleId sample);
  // Gives the sample a place in its chunk, behind those that have one, unless it has one. If the
  // chunk has no room, that is as of append(). REQUIRES: has() it.
  void put(SampleId sample);

  // nullopt: the sample has no place.
  std::optional<LogRange> place(SampleId sample) const;

  bool is_written(SampleId sample) const { return has(sample) && written_[position_[sample]]; }
  // REQUIRES of these: it has a place.
  void set_written(SampleId sample, bool written) { written_[position_[sample]] = written; }
  // The blocks that hold a part of this sample and of no other one that is written: those that the
  // log's file gains when it is written, and may lose when it is not wanted any more.
  LogRange own_blocks(SampleId sample) const;

  uint64_t footprint() const;  // bytes, without `bytes`

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  struct Chunk {
    uint64_t start = 0;
    uint32_t members = 0;  // from its first position on
    uint32_t placed = 0;   // of these, the first ones
  };

  uint32_t first(uint32_t chunk) const { return chunk * layout_.chunk_samples; }
  bool is_placed(uint32_t position) const {
    const uint32_t chunk = position / layout_.chunk_samples;
    return position - first(chunk) < chunks_[chunk].placed;
  }
  // Of positions that are placed.
  uint64_t offset(uint32_t position) const {
    return chunks_[position / layout_.chunk_samples].start + within_[position];
  }
  uint64_t end(uint32_t position) const { return offset(position) + bytes_[order_[position]]; }
  uint64_t filled(uint32_t chunk) const;  // bytes from its start to the end of what is placed
  uint64_t room(uint32_t chunk) const;    // bytes
  void begin_chunk();
  void add(SampleId sample);
  void place_behind(SampleId sample);

  std::span<const uint32_t> bytes_;
  Layout layout_;
  std::vector<SampleId> order_;     // by position; a chunk's positions begin at first()
  std::vector<uint32_t> position_;  // by sample
  std::vector<uint32_t> within_;    // by position: the first byte in its chunk
  std::vector<Chunk> chunks_;
  uint32_t ordered_ = 0;  // chunks of the order; those of append() follow
  uint32_t samples_ = 0;
  uint64_t length_ = 0;        // of the whole log
  std::vector<bool> written_;  // by position
};

}  // namespace sluice::policy
