/* Declares a dataset of many small samples to the library, as a framework would:
 * publish FILE SAMPLES
 *
 * FILE has at least 64 bytes a sample; sample i is 16 bytes at 64 * i. Says "ready" when Sluice
 * knows file and dataset. For each line of input then: "order" publishes the next epoch's shuffled
 * order, at most two ahead; "read" brackets and reads every sample of the next epoch; each is
 * answered by "done". Events that do not fit into the ring are lost, so one epoch may not be
 * enough. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "protocol/sluice.h"

enum { STEP = 64, BYTES = 16, FIRST = 8 << 20, PAUSE_AFTER = 128 };

static int (*dataset_is)(const char*, uint64_t);
static int (*order_is)(int, uint32_t, uint64_t, const uint64_t*, uint64_t, uint32_t);
static int (*sample_begins)(int, uint64_t);
static int (*sample_ends)(int, uint64_t);

static void fail(const char* what) {
  fprintf(stderr, "publish: %s\n", what);
  exit(1);
}

static void* need(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  if (!function) fail("not under libsluice.so");
  return function;
}

static void shuffle(uint64_t* order, uint64_t samples) {
  for (uint64_t i = samples - 1; i > 0; i--) {
    uint64_t other = (uint64_t)(drand48() * (double)(i + 1));
    uint64_t swapped = order[i];
    order[i] = order[other];
    order[other] = swapped;
  }
}

static void publish_order(int dataset, uint32_t epoch, uint64_t* order, uint64_t samples) {
  shuffle(order, samples);
  if (order_is(dataset, epoch, 0, order, samples, SLUICE_ORDER_WHOLE)) fail("order refused");
}

static void read_all(int dataset, int file, const uint64_t* order, uint64_t samples) {
  const struct timespec pause = {0, 100000};
  char bytes[BYTES];
  for (uint64_t i = 0; i < samples; i++) {
    const uint64_t sample = order[i];
    sample_begins(dataset, sample);
    if (pread(file, bytes, sizeof bytes, (off_t)(sample * STEP)) != BYTES) fail("file too short");
    sample_ends(dataset, sample);
    if (i % PAUSE_AFTER == 0) nanosleep(&pause, NULL); /* for the optimizer to empty the ring */
  }
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: publish FILE SAMPLES");
  const uint64_t samples = strtoull(argv[2], NULL, 10);
  const int file = open(argv[1], O_RDONLY);
  if (file < 0 || samples == 0) fail(argv[1]);
  dataset_is = need("sluice_dataset");
  order_is = need("sluice_order");
  sample_begins = need("sluice_begin");
  sample_ends = need("sluice_end");
  char* first = malloc(FIRST);
  for (int i = 0; first && i < 4; i++) { /* what is read from now on is seen */
    if (pread(file, first, FIRST, (off_t)i * FIRST) < 0) fail(argv[1]);
  }
  free(first);
  const int dataset = dataset_is("publish", samples);
  if (dataset <= 0) fail("dataset refused");
  uint64_t* orders[2];
  for (int epoch = 0; epoch < 2; epoch++) {
    orders[epoch] = malloc(samples * sizeof **orders);
    if (!orders[epoch]) fail("no memory");
    for (uint64_t i = 0; i < samples; i++) orders[epoch][i] = i;
  }
  uint32_t published = 0;
  uint32_t read_so_far = 0;
  char line[64];
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    if (!strcmp(line, "order\n")) {
      publish_order(dataset, published, orders[published % 2], samples);
      published++;
    }
    if (!strcmp(line, "read\n")) {
      if (read_so_far == published) fail("publish an order first");
      read_all(dataset, file, orders[read_so_far++ % 2], samples);
    }
    puts("done");
    fflush(stdout);
  }
  return 0;
}
