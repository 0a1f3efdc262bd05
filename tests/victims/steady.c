// A small job that runs for a while: steady ... PASSES. Reads the mapped data file and streams
// the same file, in turns, and prints one digest.
#include "tests/victims/victim.h"

int main(int argc, char** argv) {
  CHECK(argc > 4);
  static unsigned char buffer[CELL];
  uint64_t digest = DIGEST_START;
  for (int pass = atoi(argv[4]); pass > 0; --pass) {
    const unsigned char* at = map_data(argv[1]);
    int fd = open_data(argv[1]);
    for (size_t offset = 0; offset < DATA_SIZE; offset += CELL) {
      size_t size = DATA_SIZE - offset < CELL ? DATA_SIZE - offset : CELL;
      for (size_t i = 0; i < size; i += 256) digest = digest_more(digest, at + offset + i, 8);
      CHECK(read(fd, buffer, CELL) == (ssize_t)size);
      CHECK(memcmp(buffer, at + offset, size) == 0);
    }
    CHECK(close(fd) == 0 && munmap((void*)at, DATA_SIZE) == 0);
  }
  printf("%016lx\n", digest);
  return 0;
}
