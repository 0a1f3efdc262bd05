// Ends by a deliberate fault: crash ... KIND. What matters is how: status, signal, core.
#include "tests/victims/victim.h"

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static int recurse(int depth) {
  volatile char page[4096];
  page[0] = (char)depth;
  return recurse(depth + 1) + page[0];
}

int main(int argc, char** argv) {
  CHECK(argc > 4);
  const char* kind = argv[4];
  const unsigned char* at = map_data(argv[1]);
  printf("%016lx\n", digest_of(at, DATA_SIZE / 2));
  fflush(stdout);
  volatile unsigned char* bad = (unsigned char*)at + DATA_SIZE * 3 / 4;
  if (!strcmp(kind, "null")) bad = NULL, *bad = 1;
  if (!strcmp(kind, "wild")) bad = (unsigned char*)0x123456789000, *bad = 1;
  if (!strcmp(kind, "noncanonical")) bad = (unsigned char*)0xdead000000000000, *bad = 1;
  if (!strcmp(kind, "write")) *bad = 1;
  if (!strcmp(kind, "rewrite")) bad = (unsigned char*)at + 5, *bad = *bad;
  if (!strcmp(kind, "execute")) ((void (*)(void))(uintptr_t)bad)();
  if (!strcmp(kind, "kill")) kill(getpid(), SIGSEGV);
  if (!strcmp(kind, "killbus")) kill(getpid(), SIGBUS);
  if (!strcmp(kind, "raise")) raise(SIGSEGV);
  if (!strcmp(kind, "abort")) abort();
  if (!strcmp(kind, "trap")) __builtin_trap();
  if (!strcmp(kind, "stack")) return recurse(0);
  if (!strcmp(kind, "unmapped")) munmap((void*)at, DATA_SIZE), (void)*(volatile char*)bad;
  if (!strcmp(kind, "beyond")) {
    int fd = open_data(argv[1]);
    volatile unsigned char* far = mmap(NULL, 2 * DATA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(far != MAP_FAILED);
    (void)far[DATA_SIZE + 2 * PAGE];
  }
  if (!strcmp(kind, "blocked")) {  // a blocked, real fault kills, whatever the mask
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    bad = NULL;
    *bad = 1;
  }
  if (!strcmp(kind, "ignored")) {
    signal(SIGSEGV, SIG_IGN);
    kill(getpid(), SIGSEGV);
    raise(SIGSEGV);
    puts("sent ones are ignored");
    fflush(stdout);
    bad = NULL;
    *bad = 1;
  }
  puts("still here");
  return 3;
}
