// 2,000 short threads read a mapping and a stream and end, a few at a time.
#include "tests/victims/victim.h"

static const unsigned char* at;
static const char* path;
static uint64_t sums[2000];

static void* brief(void* argument) {
  size_t me = (size_t)argument;
  size_t offset = me * 6151 % (DATA_SIZE - CELL);
  CHECK(is_data(at + offset, offset, 2000));
  sums[me] = digest_of(at + offset, 2000);
  if (me % 10 == 0) {
    int fd = open_data(path);
    unsigned char buffer[3000];
    CHECK(pread(fd, buffer, sizeof buffer, (off_t)offset) == sizeof buffer);
    CHECK(is_data(buffer, offset, sizeof buffer));
    CHECK(close(fd) == 0);
  }
  if (me % 3 == 0) pthread_exit(NULL);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  path = argv[1];
  at = map_data(path);
  pthread_attr_t small;
  CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 32768) == 0);
  for (size_t i = 0; i < 2000; i += 10) {
    pthread_t threads[10];
    for (size_t j = 0; j < 10; ++j) {
      CHECK(pthread_create(&threads[j], j % 2 ? &small : NULL, brief, (void*)(i + j)) == 0);
    }
    for (size_t j = 0; j < 10; ++j) CHECK(pthread_join(threads[j], NULL) == 0);
  }
  printf("%016lx\n", digest_of(sums, sizeof sums));
  return 0;
}
