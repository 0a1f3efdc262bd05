// Which files are data. Any thread, not from a signal handler.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

inline constexpr size_t kSmallestMapping = 1 << 20;  // bytes; smaller ones are never data
// Read-only files of this size are data, bytes: of any mount; of a network or FUSE mount.
inline constexpr uint64_t kBigFile = 256ULL << 20;
inline constexpr uint64_t kBigSlowFile = 16ULL << 20;

struct DataFile {
  bool lmdb = false;
  uint64_t first_wanted = 0;  // LMDB: offset of the root page, which every reader needs
  uint64_t wanted_bytes = 0;  // its length, 0: unknown
  char path[1024] = {};       // as in /proc; may be truncated
};

// True if the open file `fd` is data: an LMDB file (checked for mappings only), a file that
// SLUICE_DATASET names, or, if SLUICE_DATASET is empty or contains `auto`, a file of at least
// kBigFile (kBigSlowFile on a slow mount) that is open for reading only. If the file is about to be
// mapped, reads its first 152 bytes, and as many of an LMDB file's second page.
bool recognise(int fd, const struct stat& about, bool mapped, DataFile* out);

// Whether recognise() may return true for a stream; needs no path: for the open() hook.
bool may_be_streamed(int fd, const struct stat& about);

}  // namespace sluice::preload
