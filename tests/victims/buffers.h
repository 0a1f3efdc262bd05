// For victims that hand mapped bytes to the kernel: other threads read everywhere in the mapping
// meanwhile, which opens and closes cells all the time.
#pragma once

#include <stdatomic.h>

#include "tests/victims/victim.h"

static const unsigned char* mapped;
static atomic_bool finished;

static inline void* disturb(void* argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument;
  while (!finished) {
    size_t offset = draw(&state) % (DATA_SIZE - 16);
    CHECK(is_data(mapped + offset, offset, 16));
    if ((state & 7) == 0) {  // a sequential run now and then
      for (size_t i = 0; i < 20 && offset + 16 < DATA_SIZE; ++i, offset += CELL / 2) {
        CHECK(mapped[offset] == data_byte(offset));
      }
    }
  }
  return NULL;
}

static pthread_t disturbers[4];

static inline void start_disturbers(void) {
  for (size_t i = 0; i < 4; ++i) {
    CHECK(pthread_create(&disturbers[i], NULL, disturb, (void*)(i + 1)) == 0);
  }
}

static inline void stop_disturbers(void) {
  finished = true;
  for (size_t i = 0; i < 4; ++i) CHECK(pthread_join(disturbers[i], NULL) == 0);
}

// Calls `use` with ranges that start before, at and after edges of cells, and that span several.
static inline void at_every_edge(void (*use)(size_t offset, size_t size), int step) {
  static const long shifts[] = {-4097, -4096, -100, -1, 0, 1, 100, 4095};
  static const size_t sizes[] = {1, 2, 200, 4096, 8192, CELL, CELL + 1, 3 * CELL + 17};
  for (size_t edge = CELL; edge + 5 * CELL < DATA_SIZE; edge += (size_t)step * CELL) {
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; ++i) {
      use(edge + (size_t)shifts[i], sizes[(edge / CELL + i) % (sizeof sizes / sizeof *sizes)]);
    }
  }
}
