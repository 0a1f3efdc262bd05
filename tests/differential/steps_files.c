// Steps that open, duplicate, ask about, lock and close descriptors.
#include <dlfcn.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <time.h>

#include "tests/differential/executor.h"

// Samples.

static int data_set;
static int (*publish_order)(int, uint32_t, uint64_t, const uint64_t*, uint64_t, uint32_t);
static int (*sample_begin)(int, uint64_t), (*sample_end)(int, uint64_t);
static __thread int depth;  // begun samples of this thread

static bool is_copy(int fd) {
  struct statfs about;
  return syscall(SYS_fstatfs, fd, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

static void order(uint32_t epoch) {
  uint64_t all[kFiles];
  for (int i = 0; i < g_program.file_count; ++i) all[i] = (uint64_t)i;
  publish_order(data_set, epoch, 0, all, (uint64_t)g_program.file_count, 1);
}

// A step that a forked or executed process takes within a sample finds the functions again.
static bool find_sluice(void) {
  if (data_set > 0) return true;
  int (*declare)(const char*, uint64_t) = dlsym(RTLD_DEFAULT, "sluice_dataset");
  if (declare == NULL) return false;
  publish_order = dlsym(RTLD_DEFAULT, "sluice_order");
  sample_begin = dlsym(RTLD_DEFAULT, "sluice_begin");
  sample_end = dlsym(RTLD_DEFAULT, "sluice_end");
  data_set = declare(g_tree, (uint64_t)g_program.file_count);
  return data_set > 0;
}

void declare_samples(void) {
  if (g_program.file_count == 0 || !find_sluice()) return;
  int (*locate)(int, uint64_t, const char* const*, uint64_t) =
      dlsym(RTLD_DEFAULT, "sluice_locate_files");
  static char names[kFiles][1200];
  const char* paths[kFiles];
  for (int i = 0; i < g_program.file_count; ++i) {
    snprintf(names[i], sizeof names[i], "%s/%s", g_tree, g_program.files[i]);
    paths[i] = names[i];
  }
  locate(data_set, 0, paths, (uint64_t)g_program.file_count);
  order(0);
  // Not for good: a program whose files do not all come has the same result.
  struct timespec now, began;
  clock_gettime(CLOCK_MONOTONIC, &began);
  bool seen[kFiles] = {false};
  uint32_t found = 0;
  for (bool late = !g_program.wait; found < (uint32_t)g_program.file_count && !late;) {
    for (int i = 0; i < g_program.file_count; ++i) {
      if (seen[i]) continue;
      sample_begin(data_set, (uint64_t)i);
      const int fd = open(names[i], O_RDONLY | O_CLOEXEC);
      if (fd < 0 || is_copy(fd)) {
        seen[i] = true;
        ++found;
      }
      if (fd >= 0) close(fd);
      sample_end(data_set, (uint64_t)i);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    late = (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 > 300;
    if (found < (uint32_t)g_program.file_count) usleep(500);
  }
  atomic_store(&g_shared->staged, found);
  order(1);
}

void begin_sample(long index) {
  ++depth;
  if (find_sluice()) sample_begin(data_set, (uint64_t)index);
}

void end_sample(long index) {
  if (depth > 0) --depth;
  if (find_sluice()) sample_end(data_set, (uint64_t)index);
}

void count_open(int fd) {
  if (fd < 0 || depth == 0) return;
  atomic_fetch_add(&g_shared->opened, 1);
  if (is_copy(fd)) atomic_fetch_add(&g_shared->copies, 1);
}

static void begin(const struct step* step) { begin_sample(number(step, 1)); }
static void end(const struct step* step) { end_sample(number(step, 1)); }

// Descriptors.

static int flags_of(const char* letters) {
  int flags = O_RDONLY;
  for (; *letters != '\0'; ++letters) {
    switch (*letters) {
      case 'w':
        flags |= O_WRONLY;
        break;
      case 'b':
        flags |= O_RDWR;
        break;
      case 'c':
        flags |= O_CREAT;
        break;
      case 'x':
        flags |= O_EXCL;
        break;
      case 't':
        flags |= O_TRUNC;
        break;
      case 'a':
        flags |= O_APPEND;
        break;
      case 'e':
        flags |= O_CLOEXEC;
        break;
      case 'n':
        flags |= O_NOFOLLOW;
        break;
      case 'p':
        flags |= O_PATH;
        break;
      case 'D':
        flags |= O_DIRECTORY;
        break;
      case 'N':
        flags |= O_NONBLOCK;
        break;
      default:
        break;
    }
  }
  return flags;
}

static void opened(const struct step* step, int fd) {
  count_open(fd);
  say_result(fd);
  if (fd >= 0) *slot(step, 1) = fd;
}

static void open_it(const struct step* step) {
  opened(step, open(path(step, 2), flags_of(word(step, 3)), 0644));
}
static void open_64(const struct step* step) {
  opened(step, open64(path(step, 2), flags_of(word(step, 3)), 0644));
}
static void open_at(const struct step* step) {  // relative to a folder that is opened for it
  const int folder = open(path(step, 2), O_RDONLY | O_DIRECTORY);
  const int fd = openat(folder, word(step, 3), flags_of(word(step, 4)), 0644);
  const int saved = errno;
  if (folder >= 0) close(folder);
  errno = saved;
  opened(step, fd);
}
static void open_at2(const struct step* step) {
  struct open_how how = {.flags = (uint64_t)flags_of(word(step, 3)),
                         .resolve = (uint64_t)number(step, 4)};
  if ((how.flags & O_CREAT) != 0) how.mode = 0644;
  opened(step, (int)syscall(SYS_openat2, AT_FDCWD, path(step, 2), &how, sizeof how));
}
static void reopen(const struct step* step) {
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", *slot(step, 2));
  opened(step, open(name, flags_of(word(step, 3))));
}
static void copied(const struct step* step, int fd) {
  say_result(fd);
  if (fd >= 0) *slot(step, 1) = fd;
}
static void dup_one(const struct step* step) { copied(step, dup(*slot(step, 2))); }
static void dup_two(const struct step* step) {
  copied(step, dup2(*slot(step, 2), (int)number(step, 3)));
}
static void dup_three(const struct step* step) {
  copied(step, dup3(*slot(step, 2), (int)number(step, 3), number(step, 4) ? O_CLOEXEC : 0));
}
static void dup_over(const struct step* step) {  // over what another slot has
  copied(step, dup2(*slot(step, 2), *slot(step, 1)));
}
static void dup_fcntl(const struct step* step) {
  copied(step,
         fcntl(*slot(step, 2), number(step, 4) ? F_DUPFD_CLOEXEC : F_DUPFD, (int)number(step, 3)));
}
static void close_it(const struct step* step) { say_result(close(*slot(step, 1))); }
static void close_from(const struct step* step) {
  say_result(
      close_range((unsigned)number(step, 1), (unsigned)number(step, 2), (int)number(step, 3)));
}

static void seek(const struct step* step) {
  static const struct {
    const char* name;
    int whence;
  } kWays[] = {{"set", SEEK_SET},
               {"cur", SEEK_CUR},
               {"end", SEEK_END},
               {"data", SEEK_DATA},
               {"hole", SEEK_HOLE}};
  int whence = SEEK_SET;
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i) {
    if (strcmp(kWays[i].name, word(step, 3)) == 0) whence = kWays[i].whence;
  }
  say_result(lseek(*slot(step, 1), number(step, 2), whence));
}

// What a descriptor or a path is.

static const char* moment(int64_t seconds) {  // those of the tree are long ago, others now
  static __thread char text[32];
  snprintf(text, sizeof text, "%ld", (long)seconds);
  return seconds < 1700000000 ? text : "now";
}

// `folder`, `name`, `flags`: what statx() gets for the same.
static void say_stat(int result, const struct stat* s, int folder, const char* name, int flags) {
  if (result != 0) {
    say_result(result);
    return;
  }
  say("%s mode %o links %lu owner %u:%u size %ld block %ld modified %s",
      S_ISREG(s->st_mode) ? which_file(s, folder, name, flags) : "other", s->st_mode,
      S_ISREG(s->st_mode) ? (unsigned long)s->st_nlink : 0UL, s->st_uid, s->st_gid,
      S_ISDIR(s->st_mode) ? 0L : (long)s->st_size, (long)s->st_blksize,
      S_ISREG(s->st_mode) ? moment(s->st_mtim.tv_sec) : "");
}

static void stat_fd(const struct step* step) {
  const int fd = *slot(step, 1);
  struct stat s;
  say_stat(fstat(fd, &s), &s, fd, "", AT_EMPTY_PATH);
}
static void stat_fd_at(const struct step* step) {
  const int fd = *slot(step, 1);
  struct stat s;
  say_stat(fstatat(fd, "", &s, AT_EMPTY_PATH), &s, fd, "", AT_EMPTY_PATH);
}
static void stat_path(const struct step* step) {
  const char* name = path(step, 1);
  struct stat s;
  say_stat(stat(name, &s), &s, AT_FDCWD, name, 0);
}
static void lstat_path(const struct step* step) {
  const char* name = path(step, 1);
  struct stat s;
  say_stat(lstat(name, &s), &s, AT_FDCWD, name, AT_SYMLINK_NOFOLLOW);
}
static void statx_any(int folder, const char* name, int flags, unsigned mask) {
  struct statx x;
  const int result = statx(folder, name, flags, mask, &x);
  if (result != 0) {
    say_result(result);
    return;
  }
  say("mask %x mode %o owner %u:%u size %ld modified %s", x.stx_mask & mask, x.stx_mode, x.stx_uid,
      x.stx_gid, S_ISDIR(x.stx_mode) ? 0L : (long)x.stx_size,
      S_ISREG(x.stx_mode) ? moment(x.stx_mtime.tv_sec) : "");
}
static void statx_fd(const struct step* step) {
  statx_any(*slot(step, 1), "", AT_EMPTY_PATH, STATX_BASIC_STATS);
}
static void statx_path(const struct step* step) {
  statx_any(AT_FDCWD, path(step, 1), 0, STATX_BASIC_STATS | STATX_BTIME);
}
static void access_path(const struct step* step) {
  say_result(access(path(step, 1), (int)number(step, 2)));
}
static void eaccess_path(const struct step* step) {
  say_result(faccessat(AT_FDCWD, path(step, 1), (int)number(step, 2), AT_EACCESS));
}

static void say_path(long length, char* link) {  // without where this run's tree is
  if (length < 0) {
    say_result(length);
    return;
  }
  link[length] = '\0';
  const size_t top = strlen(g_tree);
  say("%s", strncmp(link, g_tree, top) == 0 ? link + top : link);
}
static void read_link(const struct step* step) {
  char name[64], link[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", *slot(step, 1));
  say_path(readlink(name, link, sizeof link - 1), link);
}
static void statfs_fd(const struct step* step) {
  struct statfs about;
  if (fstatfs(*slot(step, 1), &about) != 0) {
    say_result(-1);
  } else {
    say("type %lx block %ld", (long)about.f_type, (long)about.f_bsize);
  }
}
static void get_flags(const struct step* step) {
  const int fd = *slot(step, 1);
  const int flags = fcntl(fd, F_GETFL);
  say("%x %d", flags & ~O_NOATIME, fcntl(fd, F_GETFD));
}
static void set_flags(const struct step* step) {
  say_result(fcntl(*slot(step, 1), F_SETFL, (int)number(step, 2) ? O_APPEND | O_NONBLOCK : 0));
}
static void set_cloexec(const struct step* step) {
  say_result(fcntl(*slot(step, 1), F_SETFD, (int)number(step, 2)));
}

// Locks, none of which is waited for.

static void lock_flock(const struct step* step) {
  const char* how = word(step, 2);
  say_result(flock(*slot(step, 1), (how[0] == 'e'   ? LOCK_EX
                                    : how[0] == 's' ? LOCK_SH
                                                    : LOCK_UN) |
                                       LOCK_NB));
}
static void lock_range(const struct step* step, int set, int get) {
  const char* how = word(step, 2);
  struct flock lock = {.l_type = how[0] == 'w'   ? F_WRLCK
                                 : how[0] == 'u' ? F_UNLCK
                                                 : F_RDLCK,
                       .l_whence = SEEK_SET,
                       .l_start = number(step, 3),
                       .l_len = number(step, 4)};
  const int result = fcntl(*slot(step, 1), how[0] == '?' ? get : set, &lock);
  if (result == 0 && how[0] == '?') {
    say("type %d start %ld length %ld by %d", lock.l_type, (long)lock.l_start, (long)lock.l_len,
        lock.l_type == F_UNLCK || lock.l_pid < 0 ? -1 : actor_of(lock.l_pid));
  } else {
    say_result(result);
  }
}
static void lock_posix(const struct step* step) { lock_range(step, F_SETLK, F_GETLK); }
static void lock_ofd(const struct step* step) { lock_range(step, F_OFD_SETLK, F_OFD_GETLK); }

const struct operation kFileOperations[] = {{"begin", begin},          {"end", end},
                                            {"open", open_it},         {"open64", open_64},
                                            {"openat", open_at},       {"openat2", open_at2},
                                            {"reopen", reopen},        {"dup", dup_one},
                                            {"dup2", dup_two},         {"dup3", dup_three},
                                            {"dupover", dup_over},     {"dupfd", dup_fcntl},
                                            {"close", close_it},       {"closerange", close_from},
                                            {"lseek", seek},           {"fstat", stat_fd},
                                            {"fstatat", stat_fd_at},   {"stat", stat_path},
                                            {"lstat", lstat_path},     {"statxfd", statx_fd},
                                            {"statx", statx_path},     {"access", access_path},
                                            {"eaccess", eaccess_path}, {"readlinkfd", read_link},
                                            {"fstatfs", statfs_fd},    {"getfl", get_flags},
                                            {"setfl", set_flags},      {"setfd", set_cloexec},
                                            {"flock", lock_flock},     {"setlk", lock_posix},
                                            {"ofdlk", lock_ofd},       {NULL, NULL}};
