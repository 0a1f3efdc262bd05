// What the victims share. A victim is a program that has never heard of Sluice: it prints digests
// and statuses that are the same in every run, and tests/victims/drive compares a plain run with
// runs under the library byte by byte.
//
// Every victim is called as NAME DATA BIG LMDB [its own arguments]:
//   DATA  a file of kDataSize bytes, byte i of which is data_byte(i)
//   BIG   a sparse file of 300 MiB with islands of the same content
//   LMDB  a folder with data.mdb: keys "%08d", see make-data
// and runs in a folder of its own. Files under ./data count as data too.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA_SIZE ((size_t)12 * 1024 * 1024 + 1234)
#define CELL ((size_t)64 * 1024)
#define PAGE ((size_t)4096)

#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      dprintf(2, "%s:%d: %s is false (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
      _exit(99);                                                                            \
    }                                                                                       \
  } while (0)

static inline uint64_t data_word(uint64_t index) {
  uint64_t word = (index + 1) * 0x9E3779B97F4A7C15ULL;
  return word ^ (word >> 29);
}

static inline unsigned char data_byte(uint64_t offset) {
  return (unsigned char)(data_word(offset / 8) >> (offset % 8 * 8));
}

static inline uint64_t digest_more(uint64_t digest, const void* bytes, size_t size) {
  const unsigned char* at = bytes;
  for (size_t i = 0; i < size; ++i) digest = (digest ^ at[i]) * 1099511628211ULL;
  return digest;
}
#define DIGEST_START 14695981039346656037ULL

static inline uint64_t digest_of(const void* bytes, size_t size) {
  return digest_more(DIGEST_START, bytes, size);
}

// True if bytes[0, size) are the data file's from `offset` on. Does not depend on alignment.
static inline bool is_data(const void* bytes, uint64_t offset, size_t size) {
  const unsigned char* at = bytes;
  for (size_t i = 0; i < size; ++i) {
    if (at[i] != data_byte(offset + i)) return false;
  }
  return true;
}

static inline int open_data(const char* path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  return fd;
}

// Maps the whole data file, read-only and shared, and closes its descriptor.
static inline const unsigned char* map_data(const char* path) {
  int fd = open_data(path);
  void* at = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  CHECK(close(fd) == 0);
  return at;
}

// A small generator, so that every run and every libc draws the same numbers.
static inline uint64_t draw(uint64_t* state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return *state >> 17;
}

// How a child ended, in words that do not depend on its pid.
static inline void say_status(const char* what, int status) {
  if (WIFEXITED(status)) {
    printf("%s: exit %d\n", what, WEXITSTATUS(status));
  } else {
    printf("%s: signal %d%s\n", what, WTERMSIG(status), WCOREDUMP(status) ? ", core" : "");
  }
  fflush(stdout);
}

// Runs `body` in a forked child and says how it ended.
static inline void in_child(const char* what, void (*body)(void*), void* argument) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    body(argument);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  say_status(what, status);
}
