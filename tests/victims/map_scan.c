// Reads a mapping from its first byte to its last, shared and private, whole and from the middle.
#include "tests/victims/victim.h"

int main(int argc, char** argv) {
  CHECK(argc > 1);
  for (int private = 0; private < 2; ++private) {
    int fd = open_data(argv[1]);
    size_t offset = private ? 37 * PAGE : 0;
    size_t size = DATA_SIZE - offset;
    unsigned char* at =
        mmap(NULL, size, PROT_READ, private ? MAP_PRIVATE : MAP_SHARED, fd, (off_t)offset);
    CHECK(at != MAP_FAILED);
    CHECK(is_data(at, offset, size));
    printf("%016lx\n", digest_of(at, size));
    // Words that lie across the end of every cell.
    uint64_t sum = 0;
    for (size_t edge = CELL; edge + 8 < size; edge += CELL) {
      uint64_t word;
      memcpy(&word, at + edge - 3, sizeof word);
      sum += word;
    }
    printf("%016lx\n", sum);
    CHECK(munmap(at, size) == 0);
    CHECK(close(fd) == 0);
  }
  return 0;
}
