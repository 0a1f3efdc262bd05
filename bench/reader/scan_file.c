// The modes of the benchmark reader that need no database: a mapped file, a file read by read(),
// and a folder of files 00000000, 00000001, ...
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/reader/pace.h"
#include "bench/reader/reader.h"

void file_open(const struct options* o, struct source* s) {
  struct stat st;
  s->fd = open(o->path, O_RDONLY | O_CLOEXEC);
  if (s->fd < 0 || fstat(s->fd, &st) != 0) die(o->path, strerror(errno));
  s->size = (size_t)st.st_size;
  if (strcmp(o->mode, "map") != 0) return;
  void* base = mmap(NULL, s->size, PROT_READ, MAP_SHARED, s->fd, 0);
  if (base == MAP_FAILED) die(o->path, strerror(errno));
  s->base = base;
}

static uint64_t end_of(const struct options* o, const struct source* s) {
  return o->limit > 0 && o->limit < s->size ? o->limit : s->size;
}

void map_scan(const struct options* o, struct source* s, struct pass* p) {
  const uint64_t end = end_of(o, s);
  for (uint64_t at = 0; at < end; at += o->block) {
    const size_t size = end - at < o->block ? end - at : o->block;
    take(o, p, now_ns(), s->base + at, size, size);
  }
}

// Reads up to `size` bytes; short only at the end of the file.
static size_t fill(int fd, unsigned char* buffer, size_t size, const char* path) {
  size_t got = 0;
  while (got < size) {
    const ssize_t n = read(fd, buffer + got, size - got);
    if (n < 0) die(path, strerror(errno));
    if (n == 0) break;
    got += (size_t)n;
  }
  return got;
}

static unsigned char* buffer_of(size_t size) {
  unsigned char* buffer = aligned_alloc(kPageBytes, (size + kPageBytes) / kPageBytes * kPageBytes);
  if (buffer == NULL) die("reader", "out of memory");
  return buffer;
}

void stream_scan(const struct options* o, struct source* s, struct pass* p) {
  unsigned char* buffer = buffer_of(o->block);
  const uint64_t end = end_of(o, s);
  if (lseek(s->fd, 0, SEEK_SET) != 0) die(o->path, strerror(errno));
  while (p->bytes < end) {
    const uint64_t started = now_ns();
    const uint64_t left = end - p->bytes;
    const size_t got = fill(s->fd, buffer, left < o->block ? left : o->block, o->path);
    if (got == 0) break;
    take(o, p, started, buffer, got, got);
  }
  free(buffer);
}

void files_scan(const struct options* o, struct pass* p) {
  size_t room = 1U << 20;
  unsigned char* buffer = buffer_of(room);
  for (unsigned index = 0;; ++index) {
    const uint64_t started = now_ns();
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%08u", o->path, index);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && index > 0) break;
    if (fd < 0 || fstat(fd, &st) != 0) die(path, strerror(errno));
    if ((size_t)st.st_size > room) {
      room = (size_t)st.st_size;
      free(buffer);
      buffer = buffer_of(room);
    }
    const size_t got = fill(fd, buffer, (size_t)st.st_size, path);
    close(fd);
    take(o, p, started, buffer, got, got);
    if (o->limit > 0 && p->bytes >= o->limit) break;
  }
  free(buffer);
}
