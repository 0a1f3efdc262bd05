// Packs: many samples in one large file, with an index and checksums, on a fast disk. iCache's
// packages (section III-C), Brand's chunks and LCache's log chunks are all this format.
// docs/packs.md has the same in prose.
//
//   pack = PackHeader PackEntry[samples] names data
//
// All integers are little-endian. Names are the paths of the originals without a terminating NUL,
// each path once; data are the samples' bytes in the order of the entries, without gaps. So every
// byte of the file is covered by a checksum, and a truncated file contradicts its header. A reader
// must check everything in the file before using it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::protocol {

inline constexpr uint32_t kPackMagic = 0x4b504c53;  // the bytes "SLPK"
// Increment when a field or its meaning changes. Not part of kVersion: packs outlive programs.
inline constexpr uint32_t kPackVersion = 1;
inline constexpr uint64_t kPackLeastBytes = 1 << 20;  // iCache's smallest package; not for readers
inline constexpr uint64_t kPackMaxBytes = 1 << 30;    // of a whole file
inline constexpr uint64_t kPackMaxHead = 64 << 20;    // of header, index and names together
inline constexpr uint32_t kPackMaxPath = 1023;

// Checksums are 64-bit XXH3 without a seed: they detect damage, not forgery.
struct PackHeader {
  uint32_t magic;        // kPackMagic
  uint32_t version;      // kPackVersion
  uint64_t checksum;     // of this header with 0 here, of index and names
  uint64_t bytes;        // of the whole file
  uint64_t index_bytes;  // samples * sizeof(PackEntry)
  uint64_t names_bytes;
  uint32_t samples;     // at least 1
  uint32_t entry_size;  // sizeof(PackEntry)
};
static_assert(sizeof(PackHeader) == 48 && std::is_trivially_copyable_v<PackHeader>);
static_assert(offsetof(PackHeader, checksum) == 8 && offsetof(PackHeader, samples) == 40);

// Identifies a state of the original, from stat(2) when it was read. On a mount whose times do not
// show every change, the inode is mixed with the mount's number.
struct PackVersion {
  uint64_t inode, size;              // size in bytes
  int64_t modified_s, changed_s;     // since 1970
  uint32_t modified_ns, changed_ns;  // below 10^9
  bool operator==(const PackVersion&) const = default;
};
static_assert(sizeof(PackVersion) == 40 && std::is_trivially_copyable_v<PackVersion>);

// A sample: the bytes [part, part + length) of its original, within the original's size. For a
// whole file, `part` is 0 and `length` is the file's size.
struct PackEntry {
  uint64_t at;        // first byte in the pack
  uint64_t length;    // bytes
  uint64_t checksum;  // of the bytes
  uint64_t part;      // first byte in the original
  PackVersion version;
  uint32_t path;         // first byte in the names
  uint32_t path_length;  // 1 to kPackMaxPath; the path is absolute and contains no NUL
};
static_assert(sizeof(PackEntry) == 80 && std::is_trivially_copyable_v<PackEntry>);
static_assert(offsetof(PackEntry, version) == 32 && offsetof(PackEntry, path) == 72);

}  // namespace sluice::protocol
