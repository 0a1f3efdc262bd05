// Reads a mapping at 100,000 random places.
#include "tests/victims/victim.h"

int main(int argc, char** argv) {
  CHECK(argc > 1);
  const unsigned char* at = map_data(argv[1]);
  uint64_t state = 1, digest = DIGEST_START;
  for (int i = 0; i < 100000; ++i) {
    size_t offset = draw(&state) % (DATA_SIZE - 64);
    CHECK(is_data(at + offset, offset, 64));
    digest = digest_more(digest, at + offset, 64);
  }
  printf("%016lx\n", digest);
  return 0;
}
