// A thread of real-time priority maps and reads the file that a common thread on the same processor
// maps and reads all the time: whatever it has to wait for, it must not burn the processor that the
// other needs. Counted is its own processor time, which a busy machine does not change.
#include <sched.h>
#include <time.h>

#include "tests/victims/victim.h"

static const char* path;
static const unsigned char* shared;
static volatile bool stop;
static volatile unsigned sum;

static void* common(void* argument) {
  (void)argument;
  while (!stop) {
    const unsigned char* at = map_data(path);
    for (size_t i = 0; i < DATA_SIZE; i += CELL) sum += at[i] + shared[i];
    CHECK(munmap((void*)at, DATA_SIZE) == 0);
  }
  return NULL;
}

static double seconds(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void* real_time(void* argument) {
  (void)argument;
  uint64_t state = 7;
  for (int i = 0; i < 150; ++i) {
    const struct timespec pause = {.tv_nsec = 300000};
    nanosleep(&pause, NULL);
    const unsigned char* at = map_data(path);
    size_t offset = draw(&state) % DATA_SIZE;
    CHECK(at[offset] == data_byte(offset) && shared[offset] == data_byte(offset));
    CHECK(munmap((void*)at, DATA_SIZE) == 0);
  }
  if (seconds() > 1) {
    dprintf(2, "%.2f s of processor time for what takes 0.02\n", seconds());
    _exit(98);
  }
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  path = argv[1];
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
  shared = map_data(path);
  pthread_t low, high;
  CHECK(pthread_create(&low, NULL, common, NULL) == 0);
  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);
  CHECK(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0);
  CHECK(pthread_attr_setschedpolicy(&attributes, SCHED_FIFO) == 0);
  CHECK(pthread_attr_setschedparam(&attributes, &(struct sched_param){.sched_priority = 5}) == 0);
  if (pthread_create(&high, &attributes, real_time, NULL) != 0) {
    puts("no thread of real-time priority can be made here");
    return 77;
  }
  CHECK(pthread_join(high, NULL) == 0);
  stop = true;
  CHECK(pthread_join(low, NULL) == 0);
  puts("read");
  return 0;
}
