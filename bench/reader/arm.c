// arm FILE: maps FILE twice, one after the other, and times the second mmap, when Sluice knows the
// file already; then reads at 100 random places and through 1 GiB, and counts the mapping's VMAs.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/reader/pace.h"

enum { kPlaces = 100 };

static unsigned char* map(int fd, size_t size, uint64_t* took) {
  const uint64_t started = now_ns();
  void* base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  *took = now_ns() - started;
  if (base == MAP_FAILED) die("mmap", strerror(errno));
  return base;
}

static unsigned count_vmas(uintptr_t from, uintptr_t to) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) die("/proc/self/maps", strerror(errno));
  char line[8192];
  unsigned count = 0;
  while (fgets(line, sizeof line, maps) != NULL) {
    uintptr_t low;
    uintptr_t high;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &low, &high) == 2 && low < to && high > from)
      ++count;
  }
  fclose(maps);
  return count;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "Usage: arm FILE\n");
    return 2;
  }
  struct stat st;
  const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0) die(argv[1], strerror(errno));
  const size_t size = (size_t)st.st_size;
  uint64_t first;
  uint64_t second;
  unsigned char* base = map(fd, size, &first);
  munmap(base, size);
  base = map(fd, size, &second);
  const unsigned armed = count_vmas((uintptr_t)base, (uintptr_t)base + size);

  uint64_t sum = 0;
  unsigned most = armed;
  unsigned after_random = 0;
  for (unsigned i = 1; i <= kPlaces; ++i) {
    sum += base[mix(i) % size];
    after_random = count_vmas((uintptr_t)base, (uintptr_t)base + size);
    if (after_random > most) most = after_random;
  }
  const size_t from = size / 2;
  const size_t through = size - from < 1U << 30 ? size - from : 1U << 30;
  for (size_t at = 0; at < through; at += kPageBytes) {
    sum += base[from + at];
    if (at % (through / 8 / kPageBytes * kPageBytes + kPageBytes) != 0) continue;
    const unsigned count = count_vmas((uintptr_t)base, (uintptr_t)base + size);
    if (count > most) most = count;
  }
  const unsigned after_scan = count_vmas((uintptr_t)base, (uintptr_t)base + size);
  if (after_scan > most) most = after_scan;
  printf(
      "{\"first_mmap_ms\": %.6f, \"second_mmap_ms\": %.6f, \"vmas_armed\": %u, "
      "\"vmas_after_random\": %u, \"vmas_after_scan\": %u, \"vmas_most\": %u, \"sum\": %llu}\n",
      (double)first / 1e6, (double)second / 1e6, armed, after_random, after_scan, most,
      (unsigned long long)sum);
  return 0;
}
