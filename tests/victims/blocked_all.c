// Threads that block every signal read a mapping: a checkpoint's SIGSEGV must still arrive.
#include "tests/victims/victim.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const char* path;

static void* reader(void* argument) {
  sigset_t all;
  sigfillset(&all);
  int how = (int)(intptr_t)argument;
  if (how == 0) CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
  if (how == 1) CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
  if (how == 2) {  // one by one
    for (int i = 1; i < 65; ++i) {
      sigset_t one;
      sigemptyset(&one);
      if (sigaddset(&one, i) == 0) CHECK(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0);
    }
  }
  if (how == 3) {
    CHECK(sighold(SIGSEGV) == 0);
  }
  const unsigned char* at = map_data(path);
  CHECK(is_data(at, 0, DATA_SIZE));
  CHECK(munmap((void*)at, DATA_SIZE) == 0);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  path = argv[1];
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) {
    CHECK(pthread_create(&threads[i], NULL, reader, (void*)i) == 0);
  }
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  // A mask that was set before the mapping existed, inherited at creation.
  sigset_t all;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK(pthread_attr_setsigmask_np(&attributes, &all) == 0);
  CHECK(pthread_create(&threads[0], &attributes, reader, (void*)9) == 0);
  CHECK(pthread_join(threads[0], NULL) == 0);
  puts("read");
  return 0;
}
