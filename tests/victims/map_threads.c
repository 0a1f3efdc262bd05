// Eight threads read one mapping: half of them forwards from different places, half at random.
#include "tests/victims/victim.h"

static const unsigned char* at;
static uint64_t digests[8];

static void* reader(void* argument) {
  size_t me = (size_t)argument;
  uint64_t state = me, digest = DIGEST_START;
  if (me % 2 == 0) {
    size_t start = DATA_SIZE / 8 * me / PAGE * PAGE;
    for (size_t done = 0; done < DATA_SIZE; done += PAGE) {
      size_t offset = (start + done) % DATA_SIZE / PAGE * PAGE;
      size_t size = DATA_SIZE - offset < PAGE ? DATA_SIZE - offset : PAGE;
      CHECK(is_data(at + offset, offset, size));
      digest = digest_more(digest, at + offset, size);
    }
  } else {
    for (int i = 0; i < 20000; ++i) {
      size_t offset = draw(&state) % (DATA_SIZE - 100);
      CHECK(is_data(at + offset, offset, 100));
      digest = digest_more(digest, at + offset, 100);
    }
  }
  digests[me] = digest;
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  at = map_data(argv[1]);
  pthread_t threads[8];
  for (size_t i = 0; i < 8; ++i) CHECK(pthread_create(&threads[i], NULL, reader, (void*)i) == 0);
  for (size_t i = 0; i < 8; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  for (size_t i = 0; i < 8; ++i) printf("%016lx\n", digests[i]);
  return 0;
}
