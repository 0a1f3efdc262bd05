// start-cost LIBRARY PAIRS PROGRAM [OTHER]: what preloading LIBRARY adds to starting PROGRAM and
// waiting for its end, with OTHER preloaded instead or nothing. Runs it PAIRS times without and
// with, in the order A B B A, and prints quartiles of the pairs' differences as JSON.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/reader/pace.h"

static uint64_t run(char* const* argv, char* const* environment) {
  const uint64_t started = now_ns();
  const pid_t child = fork();
  if (child < 0) die("fork", strerror(errno));
  if (child == 0) {
    execve(argv[0], argv, environment);
    _exit(127);
  }
  int status;
  if (waitpid(child, &status, 0) != child || status != 0) die(argv[0], "did not end well");
  return now_ns() - started;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  const int pairs = argc == 4 || argc == 5 ? atoi(argv[2]) : 0;
  if (pairs < 1) {
    fprintf(stderr, "Usage: start-cost LIBRARY PAIRS PROGRAM [OTHER]\n");
    return 2;
  }
  char preload[4096];
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1]);
  char other[4096];
  snprintf(other, sizeof other, "LD_PRELOAD=%s", argc == 5 ? argv[4] : "");
  char path[] = "PATH=/usr/bin:/bin";
  char* plain[] = {path, argc == 5 ? other : NULL, NULL};
  char* with[] = {path, preload, NULL};
  char* command[] = {argv[3], NULL};
  double* added = calloc((size_t)pairs * 2, sizeof *added);
  if (added == NULL) die("start-cost", "out of memory");
  double* base = added + pairs;
  run(command, plain);
  run(command, with);
  for (int i = 0; i < pairs; ++i) {
    const int with_first = i % 2;
    const uint64_t first = run(command, with_first ? with : plain);
    const uint64_t second = run(command, with_first ? plain : with);
    const double plain_us = (double)(with_first ? second : first) / 1e3;
    added[i] = (double)(with_first ? first : second) / 1e3 - plain_us;
    base[i] = plain_us;
  }
  qsort(added, (size_t)pairs, sizeof *added, ascending);
  qsort(base, (size_t)pairs, sizeof *base, ascending);
  printf(
      "{\"pairs\": %d, \"low_us\": %.1f, \"median_us\": %.1f, \"high_us\": %.1f, "
      "\"plain_us\": %.1f}\n",
      pairs, added[pairs / 4], added[pairs / 2], added[pairs * 3 / 4], base[pairs / 2]);
  free(added);
  return 0;
}
