// Opens, maps and allocates before main and after exit: constructors of every priority, an
// allocator of its own that opens a file, atexit and destructors.
#include <malloc.h>

#include "tests/victims/victim.h"

static char path[4096];
static uint64_t digests[3];
static const unsigned char* mapped;

static void find_path(void) {  // argv is not known yet
  int fd = open("/proc/self/cmdline", O_RDONLY);
  char text[8192];
  ssize_t size = read(fd, text, sizeof text - 1);
  CHECK(size > 0);
  text[size] = 0;
  strcpy(path, text + strlen(text) + 1);
  close(fd);
}

static uint64_t churn(uint64_t seed) {
  uint64_t state = seed, digest = DIGEST_START;
  void* blocks[200] = {0};
  for (int i = 0; i < 3000; ++i) {
    size_t slot = draw(&state) % 200;
    free(blocks[slot]);
    blocks[slot] = malloc(draw(&state) % 60000 + 8);
    if (i % 100 == 0) {
      FILE* file = fopen(path, "r");
      CHECK(file != NULL && fread(blocks[slot], 1, 8, file) == 8);
      digest = digest_more(digest, blocks[slot], 8);
      CHECK(fclose(file) == 0);
    }
  }
  for (int i = 0; i < 200; ++i) free(blocks[i]);
  return digest;
}

__attribute__((constructor(101))) static void very_early(void) {
  find_path();
  mapped = map_data(path);
  digests[0] = digest_of(mapped, DATA_SIZE / 4) ^ churn(1);
}
__attribute__((constructor)) static void early(void) {
  CHECK(is_data(mapped, 0, DATA_SIZE / 2));
  digests[1] = churn(2);
}
__attribute__((destructor(101))) static void late(void) {
  CHECK(is_data(mapped, 0, DATA_SIZE));
  const unsigned char* again = map_data(path);
  CHECK(is_data(again, 0, DATA_SIZE));
  char text[64];
  int size = snprintf(text, sizeof text, "late %016lx\n", churn(4));
  CHECK(write(1, text, (size_t)size) == size);
}
static void at_exit(void) {
  CHECK(is_data(mapped, DATA_SIZE / 2, DATA_SIZE / 4) == false);
  printf("atexit %016lx\n", churn(3));
}

int main(void) {
  atexit(at_exit);
  printf("%016lx %016lx\n", digests[0], digests[1]);
  return 0;
}
