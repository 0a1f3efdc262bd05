// A second thread dies of a fault while others read the mapping.
#include "tests/victims/victim.h"

static const unsigned char* at;

static void* reader(void* argument) {
  (void)argument;
  for (;;) CHECK(is_data(at, 0, DATA_SIZE));
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  at = map_data(argv[1]);
  pthread_t thread;
  for (int i = 0; i < 3; ++i) CHECK(pthread_create(&thread, NULL, reader, NULL) == 0);
  CHECK(is_data(at, 0, DATA_SIZE));
  puts("read");
  fflush(stdout);
  *(volatile char*)1 = 1;
  return 0;
}
