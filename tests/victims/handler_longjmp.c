// Leaves its SIGSEGV handler with siglongjmp, 300 times, as interpreters and garbage collectors do.
#include "tests/victims/victim.h"

static sigjmp_buf back;

static void handler(int number) {
  (void)number;
  siglongjmp(back, 1);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  const unsigned char* at = map_data(argv[1]);
  struct sigaction action = {.sa_handler = handler};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  volatile int jumps = 0;
  for (volatile int i = 0; i < 300; ++i) {
    size_t offset = DATA_SIZE / 300 * (size_t)i;
    if (sigsetjmp(back, 1) == 0) {
      CHECK(is_data(at + offset, offset, DATA_SIZE / 300));
      *(volatile char*)(uintptr_t)(i + 1) = 1;
      CHECK(false);
    }
    ++jumps;
  }
  sigset_t mask;
  CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
  printf("%d jumps, blocked afterwards: %d, %016lx\n", jumps, sigismember(&mask, SIGSEGV),
         digest_of(at, DATA_SIZE));
  return 0;
}
