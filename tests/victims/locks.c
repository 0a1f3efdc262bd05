// A job that holds flock and fcntl locks on its data file: another process must find them held
// whatever happened to the file meanwhile.
#include <sys/file.h>

#include "tests/victims/victim.h"

static const char* name = "data/locked";

static void look(void* argument) {
  (void)argument;
  int fd = open(name, O_RDWR);
  CHECK(fd >= 0);
  int got = flock(fd, LOCK_EX | LOCK_NB);
  printf("  flock %d", got);
  printf(" %d\n", got ? errno : 0);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 100};
  CHECK(fcntl(fd, F_GETLK, &lock) == 0);
  printf("  fcntl %s owner is parent %d\n", lock.l_type == F_UNLCK ? "free" : "held",
         lock.l_pid == getppid());
  struct flock own = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1000, .l_len = 100};
  got = fcntl(fd, F_OFD_SETLK, &own);
  printf("  ofd %d\n", got);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  static unsigned char copy[DATA_SIZE];
  int source = open_data(argv[1]);
  CHECK(read(source, copy, DATA_SIZE) == (ssize_t)DATA_SIZE);
  int fd = open(name, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && write(fd, copy, DATA_SIZE) == (ssize_t)DATA_SIZE && close(fd) == 0);

  for (int writable = 0; writable < 2; ++writable) {
    fd = open(name, writable ? O_RDWR : O_RDONLY);
    CHECK(flock(fd, LOCK_SH) == 0);
    struct flock lock = {.l_type = writable ? F_WRLCK : F_RDLCK, .l_start = 0, .l_len = 100};
    CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    struct flock ofd = {.l_type = writable ? F_WRLCK : F_RDLCK, .l_start = 1000, .l_len = 100};
    CHECK(fcntl(fd, F_OFD_SETLK, &ofd) == 0);
    in_child("locked", look, NULL);
    void* at = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED);
    in_child("mapped", look, NULL);
    CHECK(is_data(at, 0, DATA_SIZE));
    in_child("read", look, NULL);
    static unsigned char buffer[4096];
    for (int i = 0; i < 500; ++i) CHECK(read(fd, buffer, sizeof buffer) == sizeof buffer);
    in_child("streamed", look, NULL);
    CHECK(munmap(at, DATA_SIZE) == 0);
    in_child("unmapped", look, NULL);
    CHECK(close(fd) == 0);  // the last descriptor: everything must be free at once
    in_child("closed", look, NULL);
  }
  return 0;
}
