// Threads cancelled while they are in read, write, open, poll-like waits and reads of a mapping:
// cancel ... deferred|async. Cleanup handlers run, locks come free, everything works afterwards.
#include "tests/victims/victim.h"

static const char* path;
static const unsigned char* at;
static int ends[2];
static int cleaned;
static bool asynchronous;
static unsigned long steps;  // of the thread that is to be cancelled

static void cleanup(void* argument) {
  (void)argument;
  __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}

static void* victim(void* argument) {
  int way = (int)(intptr_t)argument, old;
  pthread_cleanup_push(cleanup, NULL);
  static __thread char buffer[100000];
  if (asynchronous) CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old) == 0);
  for (;;) {
    __atomic_add_fetch(&steps, 1, __ATOMIC_SEQ_CST);
    if (way == 0) {  // blocks for good
      (void)!read(ends[0], buffer, sizeof buffer);
    } else if (way == 1) {
      int fd = open(path, O_RDONLY);  // if cancelled after, the descriptor leaks, as anywhere
      while (fd >= 0 && read(fd, buffer, sizeof buffer) > 0) pthread_testcancel();
      close(fd);
    } else if (way == 2) {
      for (size_t i = 0; i < DATA_SIZE; i += PAGE) CHECK(at[i] == data_byte(i));
      pthread_testcancel();
    } else if (way == 3) {
      int fd = open("/dev/null", O_WRONLY);
      for (size_t i = 0; i + 3 * CELL < DATA_SIZE; i += CELL) {
        if (write(fd, at + i, 2 * CELL) != 2 * (ssize_t)CELL) _exit(70);
      }
      close(fd);
    }
  }
  pthread_cleanup_pop(0);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 4);
  path = argv[1];
  asynchronous = !strcmp(argv[4], "async");
  CHECK(pipe(ends) == 0);
  at = map_data(path);
  CHECK(is_data(at, 0, CELL));
  for (int round = 0; round < 40; ++round) {
    int way = round % 4;
    // Calls that take locks are not for asynchronous cancellation; pure reading is.
    if (asynchronous) way = round % 2 ? 2 : 0;
    pthread_t thread;
    __atomic_store_n(&steps, 0, __ATOMIC_SEQ_CST);
    CHECK(pthread_create(&thread, NULL, victim, (void*)(intptr_t)way) == 0);
    // From right at its start to well within its work; one that blocks makes one step alone.
    const unsigned long enough = way == 0 ? (unsigned long)round / 4 % 2 : (unsigned long)round / 4;
    while (__atomic_load_n(&steps, __ATOMIC_SEQ_CST) < enough) sched_yield();
    // Asleep in its call by then, mostly.
    for (int turn = 0; way == 0 && enough != 0 && turn < 2000; ++turn) sched_yield();
    CHECK(pthread_cancel(thread) == 0);
    void* result;
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(is_data(at + (size_t)round * 4 * CELL, (size_t)round * 4 * CELL, 4 * CELL));
  }
  printf("%d cleaned, %016lx\n", cleaned, digest_of(at, DATA_SIZE));
  return 0;
}
