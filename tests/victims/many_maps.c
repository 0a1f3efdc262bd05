// Makes mappings until few are left below vm.max_map_count, then maps the data, reads it all, and
// continues to allocate: many_maps ... LEFT. Its own mmap must not fail because of others.
#include "tests/victims/victim.h"

int main(int argc, char** argv) {
  CHECK(argc > 4);
  FILE* file = fopen("/proc/sys/vm/max_map_count", "r");
  long limit = 0;
  CHECK(file != NULL && fscanf(file, "%ld", &limit) == 1 && fclose(file) == 0);
  if (limit > 200000) {
    puts("vm.max_map_count is too high to be reached here");
    return 77;
  }
  long count = limit - atol(argv[4]);
  // Alternating protections cannot be merged: one mapping for each page.
  unsigned char* field =
      mmap(NULL, (size_t)count * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(field != MAP_FAILED);
  for (long i = 0; i + 1 < count; i += 2) {
    CHECK(mprotect(field + (size_t)i * PAGE, PAGE, PROT_READ) == 0);
  }
  const unsigned char* at = map_data(argv[1]);
  CHECK(is_data(at, 0, DATA_SIZE));
  void* own[40];
  for (int i = 0; i < 40; ++i) {
    own[i] = mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(own[i] != MAP_FAILED);
  }
  CHECK(is_data(at, 0, DATA_SIZE));
  void* block = malloc(10 << 20);
  CHECK(block != NULL);
  printf("%016lx\n", digest_of(at, DATA_SIZE));
  return 0;
}
