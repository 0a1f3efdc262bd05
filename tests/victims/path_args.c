// Path and attribute names, argument vectors and other strings that lie in a mapped data file,
// across the edges of its cells.
#include <spawn.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/xattr.h>

#include "tests/victims/victim.h"

#define SIZE (40 * CELL)

static const char* at;

// Names are laid across the end of cell `index`, so that a hook must open two cells.
static char* place_of(char* base, int index, const char* name) {
  char* where = base + (size_t)(index + 1) * CELL - strlen(name) / 2;
  return memcpy(where, name, strlen(name) + 1);
}
static const char* get(int index, const char* name) {
  return at + (size_t)(index + 1) * CELL - strlen(name) / 2;
}

static const char* const names[] = {"file-one",
                                    "folder-two",
                                    "link-three",
                                    "moved-four",
                                    "user.attribute",
                                    "value-of-it",
                                    "/bin/echo",
                                    "an argument",
                                    "file-one",
                                    "hard-five",
                                    "/proc/self",
                                    "deep/er/six",
                                    "SOMETHING=else",
                                    "fifo-seven",
                                    "file-one",
                                    "r",
                                    "temp-XXXX"
                                    "XX",
                                    "not-there",
                                    "folder-two/.."};

static const char* name(int index) {
  // Every use finds its cell closed again, as far as that is in a program's power.
  for (int i = 20; i < 40; ++i) CHECK(at[(size_t)i * CELL + 9] == 'x');
  return get(index, names[index]);
}

int main(void) {
  char* base = malloc(SIZE);
  memset(base, 'x', SIZE);
  for (int i = 0; i < (int)(sizeof names / sizeof *names); ++i) place_of(base, i, names[i]);
  int fd = open("data/names", O_RDWR | O_CREAT, 0600);
  CHECK(write(fd, base, SIZE) == (ssize_t)SIZE);
  CHECK(close(fd) == 0);
  fd = open("data/names", O_RDONLY);
  at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && close(fd) == 0);

  fd = open(name(0), O_RDWR | O_CREAT, 0600);
  printf("open %d\n", fd >= 0);
  printf("write %zd\n", write(fd, name(5), 11));
  close(fd);
  struct stat info;
  printf("stat %d lstat %d fstatat %d\n", stat(name(0), &info), lstat(name(0), &info),
         fstatat(AT_FDCWD, name(0), &info, 0));
  printf("size %ld\n", info.st_size);
  struct statx more;
  printf("statx %d\n", statx(AT_FDCWD, name(0), 0, STATX_SIZE, &more));
  printf("access %d %d\n", access(name(0), R_OK), faccessat(AT_FDCWD, name(8), R_OK, 0));
  printf("mkdir %d\n", mkdir(name(1), 0700));
  printf("symlink %d\n", symlink(name(0), name(2)));
  char target[64] = "";
  printf("readlink %zd\n", readlink(name(2), target, sizeof target));
  printf("target %s\n", target);
  printf("link %d\n", link(name(0), name(9)));
  printf("chmod %d\n", chmod(name(0), 0640));
  printf("chown %d\n", chown(name(0), (uid_t)-1, (gid_t)-1));
  printf("utimes %d\n", utimes(name(0), NULL));
  printf("truncate %d\n", truncate(name(0), 5));
  int result = setxattr(name(0), name(4), name(5), 11, 0);
  printf("setxattr %d %d\n", result, result ? errno : 0);
  char value[64] = "";
  ssize_t got = getxattr(name(0), name(4), value, sizeof value);
  printf("getxattr %zd %s\n", got, value);
  printf("removexattr %d\n", removexattr(name(0), name(4)));
  printf("rename %d\n", rename(name(9), name(3)));
  printf("unlink %d\n", unlink(name(3)));
  printf("mkfifo %d\n", mkfifo(name(13), 0600));
  struct statfs system;
  printf("statfs %d\n", statfs(name(10), &system));
  printf("chdir %d\n", chdir(name(1)));
  printf("chdir %d\n", chdir(".."));
  char real[4096];
  printf("realpath %d\n", realpath(name(18), real) != NULL);
  FILE* file = fopen(name(14), name(15));
  printf("fopen %d\n", file != NULL);
  if (file) fclose(file);
  printf("not there %d", open(name(17), O_RDONLY));
  printf(" %d\n", errno);
  printf("rmdir %d\n", rmdir(name(1)));
  fflush(stdout);
  for (int way = 0; way < 3; ++way) {
    char* vector[] = {(char*)name(6), (char*)name(7), (char*)name(5), NULL};
    char* environment[] = {(char*)name(12), NULL};
    pid_t child;
    if (way == 0) {
      CHECK(posix_spawn(&child, vector[0], NULL, NULL, vector, environment) == 0);
    } else if ((child = way == 1 ? fork() : vfork()) == 0) {
      execve(vector[0], vector, environment);
      _exit(97);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    say_status("exec", status);
  }
  return 0;
}
