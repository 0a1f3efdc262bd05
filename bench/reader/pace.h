// Clocks, digests and the stand-in for computing that the benchmark readers share.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kPageBytes = 4096, kCacheLine = 64 };

static inline uint64_t clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

// Computes for `ns` nanoseconds of processor time. Processor time, not wall time: whoever takes
// the core away meanwhile costs the job its time, as in a job whose work is fixed.
static inline void compute(uint64_t ns) {
  const uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
  volatile uint64_t sink = 1;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
    uint64_t x = sink;
    for (int i = 0; i < 200; ++i) x = x * 6364136223846793005U + 1442695040888963407U;
    sink = x;
  }
}

static inline uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Digest of one record that needs every byte of it.
static inline uint64_t touch_all(const unsigned char* data, size_t size) {
  uint64_t lane[4] = {size, 2, 3, 4};
  size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    uint64_t words[4];
    memcpy(words, data + i, sizeof words);
    for (int k = 0; k < 4; ++k) lane[k] = lane[k] * 0x9e3779b97f4a7c15U + words[k];
  }
  for (; i < size; ++i) lane[0] = lane[0] * 0x9e3779b97f4a7c15U + data[i];
  return mix(lane[0] ^ mix(lane[1] ^ mix(lane[2] ^ mix(lane[3]))));
}

// Digest of one record that loads one word of each cache line: the cheapest full scan there is.
static inline uint64_t touch_lines(const unsigned char* data, size_t size) {
  uint64_t sum = size;
  for (size_t i = 0; i + sizeof sum <= size; i += kCacheLine) {
    uint64_t word;
    memcpy(&word, data + i, sizeof word);
    sum += word;
  }
  return mix(sum);
}

static inline void die(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}
