// A folder of chunks that were made ahead of time (`sluice chunks make`), on whatever storage:
// packs of samples that are read together, in an order that was chosen (Brand, section 3.2). They
// are never written here. Where a sample lies is known from the beginning; what its original was
// when it was packed is compared with what it is, and that it was the same is remembered for as
// long as a change on another host may go unnoticed (SLUICE_STALE): an original is not touched for
// every sample.
//
// Memory: about 80 bytes a sample. Any thread; open() blocks in the file system.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optimizer/chunks/aligned_buffer.h"
#include "optimizer/chunks/chunk_read.h"
#include "protocol/pack.h"
#include "protocol/stage.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class PackFile;

class ChunkStore {
 public:
  struct Place {
    uint32_t chunk = 0, entry = 0;  // a chunk's number counts from 0, in the order of the names
    bool operator==(const Place&) const = default;
  };

  // The chunks in BASE's folder of chunks. Those that are damaged are left out, and counted.
  // nullptr: there is none that can be used, *reason is one line.
  static std::shared_ptr<ChunkStore> open(const std::string& base, std::string* reason);
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  uint32_t chunks() const { return static_cast<uint32_t>(names_.size()); }
  uint64_t samples() const { return lengths_.size(); }
  uint64_t damaged() const { return damaged_; }  // chunks
  uint64_t bytes(uint32_t chunk) const { return chunk_bytes_[chunk]; }

  // Where the file's sample lies, by a hash of the path: ChunkRead::member() compares the path.
  std::optional<Place> find(std::string_view path) const;
  uint64_t length(Place place) const { return lengths_[number(place)]; }  // bytes
  std::unique_ptr<ChunkRead> read(uint32_t chunk) const;

  // `stat` is the original's, as it was found at `at_ns` (CLOCK_MONOTONIC). True: it is what was
  // packed.
  bool check(Place place, const protocol::StageStat& stat, uint64_t at_ns);
  // What check() was last given, if that was right and not before `since_ns`, and when.
  struct Checked {
    protocol::StageStat stat;
    uint64_t at_ns = 0;
  };
  std::optional<Checked> checked(Place place, const protocol::PackEntry& member,
                                 uint64_t since_ns) const;
  // The file, or all files, may have changed: check() comes first.
  void doubt(std::string_view path);
  void doubt_all();

 private:
  // What distinguishes the attributes of files; the rest is one of kinds_.
  struct Sample {
    uint64_t inode;
    int64_t accessed_s, born_s;
    uint32_t accessed_ns, born_ns;
    uint32_t blocks, kind;
    uint32_t checked;  // when, in ticks; 0: not
  };
  static_assert(sizeof(Sample) == 48);
  struct Slot {
    uint64_t hash;
    Place place;
  };

  ChunkStore() = default;
  void add(std::string name, const PackFile& chunk);
  uint64_t number(Place place) const { return first_[place.chunk] + place.entry; }
  std::optional<uint32_t> kind_of(const protocol::StageStat& stat);

  const AlignedBuffer::Keep keep_;  // for the next chunk that is read
  UniqueFd folder_;
  std::vector<std::string> names_;     // by chunk
  std::vector<uint64_t> chunk_bytes_;  // likewise
  std::vector<uint64_t> first_;        // likewise: the number of its first sample
  std::vector<uint32_t> lengths_;      // by sample
  std::vector<uint64_t> versions_;     // likewise: a hash of what its original was
  std::vector<Slot> slots_;            // by hash
  uint64_t damaged_ = 0;
  uint64_t opened_ns_ = 0;

  mutable std::mutex mutex_;  // of the rest
  std::vector<Sample> samples_;
  std::vector<protocol::StageStat> kinds_;
};

}  // namespace sluice::optimizer
