// Which files are data. Any thread, not from a signal handler.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

inline constexpr size_t kSmallestMapping = 1 << 20;  // bytes; smaller ones are never data
inline constexpr uint64_t kBigFile = 256ULL << 20;   // bytes; read-only files from here on

struct DataFile {
  bool lmdb = false;
  uint64_t first_wanted = 0;  // LMDB: where in the file the root page is that every reader needs
  uint64_t wanted_bytes = 0;  // its length, 0: not known
  char path[1024] = {};       // as /proc tells it; may be truncated
};

// True if the open file `fd` is data: an LMDB file (asked for mappings only), a file that
// SLUICE_DATASET names, or, where SLUICE_DATASET names none or says `auto`, a file of at least
// kBigFile that is open for reading only. Reads a file's first 152 bytes, and as many of an LMDB
// file's second page, if it is about to be mapped.
bool recognise(int fd, const struct stat& about, bool mapped, DataFile* out);

// Whether it is worth asking at all, without a path: for the open() hook.
bool may_be_streamed(const struct stat& about);

}  // namespace sluice::preload
