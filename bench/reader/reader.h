// A job as the benchmarks see it: it takes records one after another, touches each, then computes
// on it for a fixed time. What a record costs beyond that time is lost; it cannot catch up.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options {
  const char* mode;    // lmdb, map, stream or files
  const char* path;    // folder of an LMDB, file, file, folder of files
  double ns_per_byte;  // computing per byte of the file; 0 is none
  bool lines;          // touch one word per cache line instead of every byte
  unsigned passes;     // over the same mapping
  uint64_t limit;      // bytes of each pass; 0 is all
  uint64_t random;     // that many random records instead of a scan; 0 is a scan
  unsigned rank, of;   // takes records rank, rank + of, ...
  size_t block;        // bytes of a record of a file, and of one read()
};

struct pass {
  uint64_t digest;    // sum of the records' digests: ranks' digests add up to the whole's
  uint64_t records;   // taken
  uint64_t bytes;     // of the file, whole pages for LMDB
  uint64_t touch_ns;  // getting and touching, without computing
  uint64_t worst_ns;  // the longest of these
  uint64_t total_ns;
};

struct source {
  const unsigned char* base;  // map
  size_t size;                // of the file
  int fd;                     // stream
  void* env;                  // lmdb
  void* txn;
};

// Takes one record that took from `started` to get: touches it, then computes. `bytes` is what
// counts as read for it.
void take(const struct options* o, struct pass* p, uint64_t started, const unsigned char* data,
          size_t size, uint64_t bytes);

// Each mode: open once, then scan once per pass. They end the process on errors.
void lmdb_open(const struct options* o, struct source* s);
void lmdb_scan(const struct options* o, struct source* s, struct pass* p);
void file_open(const struct options* o, struct source* s);
void map_scan(const struct options* o, struct source* s, struct pass* p);
void stream_scan(const struct options* o, struct source* s, struct pass* p);
void files_scan(const struct options* o, struct pass* p);
