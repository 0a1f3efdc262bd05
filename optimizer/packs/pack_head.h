// What a pack (protocol/pack.h) begins with: header, index and names. Nothing in it is trusted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/pack.h"

namespace sluice::optimizer {

// Which bytes of which original: [offset, offset + length) of the file at `path`, an absolute one
// of at most protocol::kPackMaxPath bytes.
struct PackKey {
  std::string_view path;
  uint64_t offset = 0;
  uint64_t length = 0;
  bool operator==(const PackKey&) const = default;
};

// Whether the two make sense together, so that a pack can hold the sample.
bool can_be_packed(const PackKey& key, const protocol::PackVersion& version);

// Immutable once it is parsed; any thread.
class PackHead {
 public:
  // Bytes of the head of a pack whose file has `file_bytes` and begins with `first`. 0: it is no
  // pack, *reason is a few words.
  static uint64_t bytes_of(std::span<const char> first, uint64_t file_bytes, std::string* reason);

  // `head` begins with as many bytes as bytes_of() says. False: *reason is a few words.
  bool parse(std::span<const char> head, uint64_t file_bytes, std::string* reason);

  std::span<const protocol::PackEntry> entries() const { return entries_; }
  // REQUIRES: the entry is one of entries(). The key lives as long as this.
  PackKey key(const protocol::PackEntry& entry) const;
  uint64_t bytes() const { return bytes_; }  // about what this holds in memory

 private:
  bool entries_make_sense(uint64_t file_bytes) const;

  uint64_t bytes_ = 0;
  std::vector<protocol::PackEntry> entries_;
  std::string names_;
};

}  // namespace sluice::optimizer
