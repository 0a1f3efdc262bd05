// What the victims of the stage share: a dataset of files is declared, located and ordered, and a
// case begins once the files that it is about are staged. A plain run does the same without Sluice
// and has the same output. Called as NAME CASE FOLDER [WORD]; FOLDER is absolute.
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/victims/victim.h"

#define STAGE_DEADLINE 30  // seconds

static char folder[2048];
static int dataset;
static uint32_t epoch;
static uint64_t samples;
// protocol/sluice.h's, if the process has the library.
static int (*publish_order)(int, uint32_t, uint64_t, const uint64_t*, uint64_t, uint32_t);
static int (*sample_begin)(int, uint64_t), (*sample_end)(int, uint64_t);
static int (*fetch_begin)(int), (*fetch_end)(int);

static inline bool with_sluice(void) { return publish_order != NULL; }

__attribute__((format(printf, 1, 2))) static inline void say(const char* format, ...) {
  char text[8192];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text - 1, format, arguments);
  va_end(arguments);
  CHECK(length >= 0 && (size_t)length < sizeof text - 1);
  text[length] = '\n';
  CHECK(write(1, text, (size_t)length + 1) == length + 1);
}

// FOLDER/name, in one of a few buffers.
static inline const char* at(const char* name) {
  static char paths[8][4096];
  static int next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static inline bool is_copy(int fd) {
  struct statfs about;
  return syscall(SYS_fstatfs, fd, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

// Another epoch reads all samples, after the one before it has.
static inline void order_again(void) {
  if (!with_sluice()) return;
  for (uint64_t i = 0; i < samples && epoch > 0; ++i) {
    sample_begin(dataset, i);
    sample_end(dataset, i);
  }
  uint64_t* all = calloc(samples, sizeof *all);
  for (uint64_t i = 0; i < samples; ++i) all[i] = i;
  publish_order(dataset, epoch++, 0, all, samples, 1);
  free(all);
}

// Copies are given in a window alone. A case is one, unless it says otherwise.
static inline void begin_window(void) {
  if (with_sluice()) CHECK(fetch_begin(dataset) == 0);
}
static inline void end_window(void) {
  if (with_sluice()) CHECK(fetch_end(dataset) == 0);
}

// Opens a file, its copy if there is the library; ends the process if that does not come.
static inline int open_copy(const char* path, int flags) {
  const time_t deadline = time(NULL) + STAGE_DEADLINE;
  for (int turn = 0;; ++turn) {
    int fd = open(path, flags);
    CHECK(fd >= 0);
    if (!with_sluice() || is_copy(fd)) return fd;
    close(fd);
    if (time(NULL) > deadline) {
      dprintf(2, "%s was not staged\n", path);
      _exit(98);
    }
    if (turn % 100 == 99) order_again();
    usleep(2000);
  }
}

static inline void wait_copy(const char* path) { close(open_copy(path, O_RDONLY)); }

// Declares the dataset of `names` in FOLDER and waits for the copies of all of them.
static inline void begin_stage(const char* const* names, int count) {
  int (*declare)(const char*, uint64_t) = dlsym(RTLD_DEFAULT, "sluice_dataset");
  int (*locate)(int, uint64_t, const char* const*, uint64_t) =
      dlsym(RTLD_DEFAULT, "sluice_locate_files");
  if (declare == NULL) return;
  publish_order = dlsym(RTLD_DEFAULT, "sluice_order");
  sample_begin = dlsym(RTLD_DEFAULT, "sluice_begin");
  sample_end = dlsym(RTLD_DEFAULT, "sluice_end");
  fetch_begin = dlsym(RTLD_DEFAULT, "sluice_fetch_begin");
  fetch_end = dlsym(RTLD_DEFAULT, "sluice_fetch_end");
  samples = (uint64_t)count;
  dataset = declare(folder, samples);
  if (dataset <= 0) {
    dprintf(2, "no dataset: %d\n", dataset);
    _exit(98);
  }
  for (int i = 0; i < count; ++i) {
    const char* path = at(names[i]);
    CHECK(locate(dataset, (uint64_t)i, &path, 1) == 0);
  }
  order_again();
  begin_window();
}

static inline uint64_t digest_rest(int fd) {
  static char buffer[1 << 16];
  uint64_t digest = DIGEST_START;
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0)
    digest = digest_more(digest, buffer, (size_t)got);
  if (got < 0) say("read: %s", strerror(errno));
  return digest;
}

// What an open of `path` gives now.
static inline void say_file(const char* what, const char* path) {
  int fd = open(path, O_RDONLY);
  if (fd < 0) {
    say("%s: %s", what, strerror(errno));
    return;
  }
  struct stat about;
  CHECK(fstat(fd, &about) == 0);
  say("%s: size %ld mode %o links %lu digest %lx", what, (long)about.st_size, about.st_mode,
      (unsigned long)about.st_nlink, digest_rest(fd));
  close(fd);
}

static inline void say_stat(const char* what, int result, const struct stat* s) {
  if (result != 0) {
    say("%s: %s", what, strerror(errno));
    return;
  }
  say("%s: dev %lx ino %lu mode %o nlink %lu uid %u gid %u rdev %lx size %ld blksize %ld blocks "
      "%ld "
      "mtime %ld.%09ld ctime %ld.%09ld",
      what, s->st_dev, s->st_ino, s->st_mode, (unsigned long)s->st_nlink, s->st_uid, s->st_gid,
      s->st_rdev, (long)s->st_size, (long)s->st_blksize, (long)s->st_blocks, s->st_mtim.tv_sec,
      s->st_mtim.tv_nsec, s->st_ctim.tv_sec, s->st_ctim.tv_nsec);
}

#define SAY_RESULT(call)                                                   \
  do {                                                                     \
    errno = 0;                                                             \
    const long result_ = (long)(call);                                     \
    say("%s: %ld %s", #call, result_, result_ < 0 ? strerror(errno) : ""); \
  } while (0)

struct stage_case {
  const char* name;
  void (*run)(void);
};

static inline int run_case(const struct stage_case* cases, int argc, char** argv) {
  CHECK(argc >= 2);
  if (strcmp(argv[1], "--list") == 0) {
    for (; cases->name != NULL; ++cases) say("%s", cases->name);
    return 0;
  }
  CHECK(argc >= 3);
  snprintf(folder, sizeof folder, "%s", argv[2]);
  for (; cases->name != NULL; ++cases) {
    if (strcmp(cases->name, argv[1]) != 0) continue;
    cases->run();
    return 0;
  }
  dprintf(2, "no case %s\n", argv[1]);
  return 97;
}
