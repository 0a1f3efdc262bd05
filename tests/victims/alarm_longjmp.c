// A timer's handler leaves hooked calls with siglongjmp, 200 times; then everything still works.
#include <sys/time.h>

#include "tests/victims/victim.h"

static sigjmp_buf back;
static volatile sig_atomic_t armed;

static void on_alarm(int number) {
  (void)number;
  if (armed) {
    armed = 0;
    siglongjmp(back, 1);
  }
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  const unsigned char* at = map_data(argv[1]);
  struct sigaction action = {.sa_handler = on_alarm};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  int big = open_data(argv[2]), ends[2], null = open("/dev/null", O_WRONLY);
  CHECK(pipe(ends) == 0);
  static char buffer[1 << 20];
  volatile int jumps = 0;
  for (volatile int round = 0; round < 200; ++round) {
    struct itimerval soon = {.it_value = {0, 200 + round % 50 * 60}};
    if (sigsetjmp(back, 1) == 0) {
      armed = 1;
      CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
      for (;;) {
        switch (round % 6) {
          case 0:
            (void)!read(ends[0], buffer, sizeof buffer);
            break;
          case 1:
            (void)!pread(big, buffer, sizeof buffer, round * 1000000L);
            break;
          case 2:
            (void)!write(null, at + (size_t)round * CELL / 2 + 77, 3 * CELL);
            break;
          case 3:
            (void)!close(open(argv[1], O_RDONLY));
            break;
          case 4:
            CHECK(is_data(at + (size_t)round * CELL / 2, (size_t)round * CELL / 2, CELL));
            break;
          case 5: {
            struct stat info;
            CHECK(stat(argv[2], &info) == 0);
          }
        }
      }
    }
    ++jumps;
  }
  close_range(3, 2000, 0);  // what the abandoned opens left behind
  CHECK(is_data(at, 0, DATA_SIZE));
  int fd = open_data(argv[1]);
  CHECK(write(1, at + 10 * CELL - 8, 16) == 16);
  CHECK(pread(fd, buffer, 1000, 4 * CELL) == 1000 && is_data(buffer, 4 * CELL, 1000));
  void* again = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(again != MAP_FAILED && is_data(again, 0, DATA_SIZE));
  printf("\n%d jumps\n", jumps);
  return 0;
}
