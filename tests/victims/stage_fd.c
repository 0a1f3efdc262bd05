// Descriptors of staged files: whatever is asked of one is answered as by the original's.
#include <linux/fs.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "tests/victims/stage.h"

extern char** environ;
static char* self;

static const char* const kNames[] = {"f0", "f1", "f2", "f3", "sparse"};

static int staged(const char* name) {
  begin_stage(kNames, 5);
  return open_copy(at(name), O_RDONLY | O_CLOEXEC);
}

// This program again, in a process without the library, as CASE FOLDER WORD.
static void without_library(const char* what, const char* word) {
  fflush(NULL);
  char* argv[] = {self, (char*)what, folder, (char*)word, NULL};
  char* environment[] = {NULL};
  pid_t pid;
  CHECK(posix_spawn(&pid, self, NULL, NULL, argv, environment) == 0);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void attributes(void) {
  const int fd = staged("f3");
  struct stat s;
  say_stat("fstat", fstat(fd, &s), &s);
  say_stat("fstatat", fstatat(fd, "", &s, AT_EMPTY_PATH), &s);
  static const unsigned masks[] = {0,
                                   STATX_SIZE,
                                   STATX_BASIC_STATS,
                                   STATX_BASIC_STATS | STATX_BTIME,
                                   STATX_ALL,
                                   STATX_BASIC_STATS | STATX_MNT_ID,
                                   0x2000};
  for (size_t i = 0; i < sizeof masks / sizeof *masks; ++i) {
    struct statx x;
    memset(&x, 0x5a, sizeof x);
    SAY_RESULT(statx(fd, "", AT_EMPTY_PATH, masks[i], &x));
    say("mask %x: %x attributes %llx of %llx mode %o links %u size %llu ino %llu blksize %u "
        "blocks %llu mount %lu btime %lld mtime %lld.%u dev %u:%u",
        masks[i], x.stx_mask, x.stx_attributes, x.stx_attributes_mask, x.stx_mode, x.stx_nlink,
        x.stx_size, x.stx_ino, x.stx_blksize, x.stx_blocks, (unsigned long)x.stx_mnt_id,
        x.stx_btime.tv_sec, x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec, x.stx_dev_major,
        x.stx_dev_minor);
  }
  say("flags %x marks %x", fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
}

static void file_system(void) {
  const int fd = staged("f3");
  int left = -1;
  SAY_RESULT(lseek(fd, 1000, SEEK_SET));
  SAY_RESULT(ioctl(fd, FIONREAD, &left));
  say("left %d", left);
  struct statfs about;
  SAY_RESULT(fstatfs(fd, &about));
  say("type %lx block %ld name %ld", (long)about.f_type, (long)about.f_bsize,
      (long)about.f_namelen);
  char value[64] = "";
  SAY_RESULT(fgetxattr(fd, "user.colour", value, sizeof value));
  say("%s", value);
  SAY_RESULT(flistxattr(fd, value, sizeof value));
  int number = 0;
  SAY_RESULT(ioctl(fd, FIGETBSZ, &number));
  say("block %d", number);
  SAY_RESULT(ioctl(fd, FS_IOC_GETFLAGS, &number) == 0 ? number : -1);
  SAY_RESULT(ioctl(fd, 0x12345678, &number));
  SAY_RESULT(lseek(fd, 0, SEEK_CUR));
}

static void locks(void) {
  const int fd = staged("f3");
  SAY_RESULT(flock(fd, LOCK_EX | LOCK_NB));
  without_library("try", "f3");
  SAY_RESULT(flock(fd, LOCK_UN));
  without_library("try", "f3");
  const int other = open_copy(at("f2"), O_RDONLY);
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 10};
  SAY_RESULT(fcntl(other, F_SETLK, &lock));
  without_library("try", "f2");
  lock.l_type = F_WRLCK;
  SAY_RESULT(fcntl(other, F_SETLK, &lock));
  const int third = open_copy(at("f1"), O_RDONLY);
  lock = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET};
  SAY_RESULT(fcntl(third, F_OFD_SETLK, &lock));
  without_library("try", "f1");
  SAY_RESULT(fcntl(third, F_SETLEASE, F_RDLCK));
  const int fourth = open_copy(at("f0"), O_RDONLY);
  SAY_RESULT(lockf(fourth, F_TEST, 10));
  SAY_RESULT(lockf(fourth, F_TLOCK, 10));
}

static void try_lock(const char* name) {
  int fd = open(at(name), O_RDWR);
  if (fd < 0) fd = open(at(name), O_RDONLY);  // a mount for reading
  CHECK(fd >= 0);
  SAY_RESULT(flock(fd, LOCK_EX | LOCK_NB));
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  SAY_RESULT(fcntl(fd, F_GETLK, &lock));
  say("type %d start %ld length %ld, by %s", lock.l_type, (long)lock.l_start, (long)lock.l_len,
      lock.l_pid == getppid() ? "its parent"
      : lock.l_pid < 0        ? "an open file"
                              : "another");
}

static void direct(void) {
  int fd = staged("f3");
  void* page;
  CHECK(posix_memalign(&page, 4096, 8192) == 0);
  SAY_RESULT(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT));
  SAY_RESULT(read(fd, page, 4096));
  SAY_RESULT(read(fd, (char*)page + 1, 100));
  say("flags %x digest %lx", fcntl(fd, F_GETFL), digest_of(page, 4096));
  fd = open(at("f3"), O_RDONLY | O_DIRECT);
  SAY_RESULT(read(fd, page, 4096));
  SAY_RESULT(read(fd, (char*)page + 1, 100));
  say("flags %x", fcntl(fd, F_GETFL));
}

static void map(void) {
  const int fd = staged("f3");
  const struct {
    int prot, flags;
  } ways[] = {{PROT_READ, MAP_PRIVATE},
              {PROT_READ, MAP_SHARED},
              {PROT_READ | PROT_WRITE, MAP_PRIVATE},
              {PROT_READ | PROT_WRITE, MAP_SHARED},
              {PROT_READ | PROT_EXEC, MAP_PRIVATE},
              {PROT_READ, MAP_SHARED_VALIDATE},
              {PROT_READ, MAP_SHARED | MAP_POPULATE},
              {PROT_READ, 0}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    unsigned char* memory = mmap(NULL, 300000, ways[i].prot, ways[i].flags, fd, 0);
    if (memory == MAP_FAILED) {
      say("way %zu: %s", i, strerror(errno));
      continue;
    }
    say("way %zu: %lx", i, digest_of(memory, 300000));
    if (ways[i].prot == (PROT_READ | PROT_WRITE)) memory[5] = 1;
    SAY_RESULT(mprotect(memory, 4096, PROT_READ | PROT_WRITE));
    SAY_RESULT(msync(memory, 4096, MS_SYNC));
    munmap(memory, 300000);
  }
  SAY_RESULT(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 100) == MAP_FAILED ? -1 : 0);
  say("digest %lx", digest_rest(fd));
}

static void proc_fd(void) {
  const int fd = staged("f3");
  char name[64], link[4096];
  const char* forms[] = {"/proc/self/fd/%d", "/dev/fd/%d", "/proc/thread-self/fd/%d"};
  for (int i = 0; i < 3; ++i) {
    snprintf(name, sizeof name, forms[i], open_copy(at("f3"), O_RDONLY));
    const ssize_t length = readlinkat(AT_FDCWD, name, link, sizeof link);
    say("readlinkat: %.*s", (int)length, link);
    snprintf(name, sizeof name, forms[i], open_copy(at("f3"), O_RDONLY));
    say("realpath: %s", realpath(name, NULL));
    snprintf(name, sizeof name, forms[i], open_copy(at("f3"), O_RDONLY));
    say("canonicalize_file_name: %s", canonicalize_file_name(name));
    snprintf(name, sizeof name, forms[i], open_copy(at("f3"), O_RDONLY));
    say_file("open", name);
    snprintf(name, sizeof name, forms[i], open_copy(at("f2"), O_RDONLY));
    struct stat s;
    say_stat("stat", stat(name, &s), &s);
    snprintf(name, sizeof name, forms[i], open_copy(at("f2"), O_RDONLY));
    SAY_RESULT(access(name, R_OK | W_OK | X_OK));
    struct statfs f;
    snprintf(name, sizeof name, forms[i], open_copy(at("f2"), O_RDONLY));
    SAY_RESULT(statfs(name, &f));
    say("type %lx", (long)f.f_type);
    snprintf(name, sizeof name, forms[i], open_copy(at("f3"), O_RDONLY));
    SAY_RESULT(getxattr(name, "user.colour", link, sizeof link));
  }
  snprintf(name, sizeof name, "/proc/%d/fd/%d", getpid(), open_copy(at("f3"), O_RDONLY));
  ssize_t length = readlink(name, link, sizeof link);
  say("by number: %.*s", (int)length, link);
  snprintf(name, sizeof name, "/proc/self/task/%d/fd/%d", getpid(), open_copy(at("f3"), O_RDONLY));
  length = readlink(name, link, sizeof link);
  say("by task: %.*s", (int)length, link);
  const int numbers = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
  snprintf(name, sizeof name, "%d", open_copy(at("f3"), O_RDONLY));
  length = readlinkat(numbers, name, link, sizeof link);
  say("relative: %.*s", (int)length, link);
  snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
  FILE* facts = fopen(name, "r");
  while (fgets(link, sizeof link, facts) != NULL) {
    if (strncmp(link, "mnt_id", 6) == 0 || strncmp(link, "ino", 3) == 0) say("%s", link);
  }
  // What this process may have written it does not take from the stage any more: last.
  int again[5];
  for (int i = 0; i < 3; ++i) {
    snprintf(name, sizeof name, forms[i], open_copy(at(kNames[i]), O_RDONLY));
    again[i] = open(name, O_RDWR);
  }
  snprintf(name, sizeof name, "%d", open_copy(at("f3"), O_RDONLY));
  again[3] = openat(numbers, name, O_RDWR);
  CHECK(chdir("/proc/self/fd") == 0);
  snprintf(name, sizeof name, "%d", open_copy(at("sparse"), O_RDONLY));
  again[4] = open(name, O_RDWR);
  for (int i = 0; i < 5; ++i)
    say("for writing: %d %d", again[i] >= 0, again[i] >= 0 && is_copy(again[i]));
}

static void copies(void) {
  const int fd = staged("f3");
  char one;
  const int a = dup(fd), b = dup2(fd, 700), c = dup3(fd, 701, O_CLOEXEC);
  const int d = fcntl(fd, F_DUPFD, 500), e = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  const int all[] = {fd, a, b, c, d, e};
  for (int i = 0; i < 6; ++i) {
    CHECK(read(all[i], &one, 1) == 1);
    say("%d: %02x at %ld marks %d", i, (unsigned char)one, (long)lseek(fd, 0, SEEK_CUR),
        fcntl(all[i], F_GETFD));
  }
  SAY_RESULT(flock(b, LOCK_SH));
  for (int i = 0; i < 6; ++i) {
    CHECK(read(all[i], &one, 1) == 1);
    struct stat s;
    say_stat("copy", fstat(all[i], &s), &s);
    say("%d: %02x at %ld marks %d copy %d", i, (unsigned char)one, (long)lseek(fd, 0, SEEK_CUR),
        fcntl(all[i], F_GETFD), is_copy(all[i]));
  }
  const int g = open_copy(at("f2"), O_RDONLY);
  SAY_RESULT(dup2(g, g) == g);
  SAY_RESULT(dup3(g, g, 0));
  CHECK(dup2(fd, g) == g);
  struct stat s;
  say_stat("over another", fstat(g, &s), &s);
  close(g);
  SAY_RESULT(fstat(g, &s));
  SAY_RESULT(flock(g, LOCK_SH));
}

static void forked(void) {
  const int fd = staged("f3");
  char byte;
  for (int turn = 0; turn < 3; ++turn) {
    const pid_t pid = fork();
    if (pid == 0) {
      CHECK(read(fd, &byte, 1) == 1);
      say("child %02x at %ld", (unsigned char)byte, (long)lseek(fd, 0, SEEK_CUR));
      if (turn == 1) SAY_RESULT(flock(fd, LOCK_EX | LOCK_NB));
      _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(read(fd, &byte, 1) == 1);
    say("parent %02x at %ld", (unsigned char)byte, (long)lseek(fd, 0, SEEK_CUR));
    if (turn == 1) without_library("try", "f3");  // the lock of a child that is gone: the parent's
  }
}

static void inherited(void) {
  begin_stage(kNames, 5);
  for (int way = 0; way < 3; ++way) {
    const int fd = open_copy(at("f3"), O_RDONLY);
    CHECK(lseek(fd, 100 + way, SEEK_SET) == 100 + way);
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    char* argv[] = {self, "look", folder, number, NULL};
    char* environment[] = {NULL};
    pid_t pid = -1;
    if (way == 0) CHECK(posix_spawn(&pid, self, NULL, NULL, argv, environment) == 0);
    if (way == 1 && (pid = fork()) == 0) {
      execve(self, argv, environment);
      _exit(96);
    }
    if (way == 2 && (pid = vfork()) == 0) {
      execve(self, argv, environment);
      _exit(96);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    struct stat s;
    say_stat("after", fstat(fd, &s), &s);
    // A child of vfork has only its own descriptors to change.
    if (way != 2) say("parent at %ld", (long)lseek(fd, 0, SEEK_CUR));
    close(fd);
  }
}

static void look(const char* number) {
  const int fd = atoi(number);
  struct stat s;
  say_stat("inherited", fstat(fd, &s), &s);
  char link[4096], name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(name, link, sizeof link);
  char byte;
  CHECK(read(fd, &byte, 1) == 1);
  say("%.*s at %ld", (int)length, link, (long)lseek(fd, 0, SEEK_CUR));
}

// A number that was given back where no hook is, and means something else now.
static void reused(void) {
  const int fd = staged("f3");
  int ends[2];
  asm volatile("syscall" : : "a"(SYS_close), "D"(fd) : "rcx", "r11", "memory");
  CHECK(pipe(ends) == 0 && ends[0] == fd);
  struct stat s;
  CHECK(fstat(fd, &s) == 0);
  say("mode %o", s.st_mode);
  SAY_RESULT(flock(fd, LOCK_SH | LOCK_NB));
  struct statfs about;
  CHECK(fstatfs(fd, &about) == 0);
  say("type %lx", (long)about.f_type);
  CHECK(write(ends[1], "abc", 3) == 3);
  char text[4];
  SAY_RESULT(read(fd, text, 4));
}

static const struct stage_case kCases[] = {{"attributes", attributes},
                                           {"file_system", file_system},
                                           {"locks", locks},
                                           {"direct", direct},
                                           {"map", map},
                                           {"proc_fd", proc_fd},
                                           {"copies", copies},
                                           {"forked", forked},
                                           {"inherited", inherited},
                                           {"reused", reused},
                                           {NULL, NULL}};

int main(int argc, char** argv) {
  self = argv[0];
  if (argc == 4) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    strcmp(argv[1], "look") == 0 ? look(argv[3]) : try_lock(argv[3]);
    return 0;
  }
  return run_case(kCases, argc, argv);
}
