// Reads a file with every call that streams: streams ... KIND, on the big file.
#include <sys/sendfile.h>

#include "tests/victims/victim.h"

static unsigned char buffer[1 << 20];

static void say(uint64_t digest, uint64_t size) { printf("%016lx %lu\n", digest, size); }

int main(int argc, char** argv) {
  CHECK(argc > 4);
  const char* kind = argv[4];
  int fd = open_data(argv[2]);
  uint64_t digest = DIGEST_START, total = 0;
  struct iovec parts[3] = {{buffer, 1000}, {buffer + 1000, 70000}, {buffer + 71000, 200000}};
  ssize_t got = 0;
  int ends[2], null = open("/dev/null", O_WRONLY);
  CHECK(pipe(ends) == 0);
  int calls = 0;
  volatile uintptr_t nowhere = 16;
  for (;; total += (uint64_t)got, ++calls) {
    if (!strcmp(kind, "read")) got = read(fd, buffer, sizeof buffer - (size_t)(calls % 7) * 1000);
    if (!strcmp(kind, "pread")) got = pread(fd, buffer, sizeof buffer, (off_t)total);
    if (!strcmp(kind, "readv")) got = readv(fd, parts, 3);
    if (!strcmp(kind, "preadv")) got = preadv(fd, parts, 3, (off_t)total);
    if (!strcmp(kind, "preadv2")) got = preadv2(fd, parts, 3, -1, 0);
    if (!strcmp(kind, "sendfile")) {
      got = sendfile(ends[1], fd, NULL, 60000);
      if (got > 0) CHECK(read(ends[0], buffer, 65536) == got);
    }
    if (!strcmp(kind, "splice")) {
      got = splice(fd, NULL, ends[1], NULL, 60000, 0);
      if (got > 0) CHECK(read(ends[0], buffer, 65536) == got);
    }
    if (!strcmp(kind, "copy")) {
      if (calls == 0) {
        close(null);
        null = open("copy", O_RDWR | O_CREAT, 0600);
      }
      got = copy_file_range(fd, NULL, null, NULL, 30 << 20, 0);
      if (got < 0 && (errno == EXDEV || errno == EINVAL)) {
        got = sendfile(null, fd, NULL, 30 << 20);
      }
      if (got == 0) {
        struct stat a, b;
        CHECK(fstat(fd, &a) == 0 && fstat(null, &b) == 0 && a.st_size == b.st_size);
      }
      CHECK(got >= 0);
      if (got == 0) break;
      continue;
    }
    if (!strcmp(kind, "map")) {
      struct stat info;
      CHECK(fstat(fd, &info) == 0);
      unsigned char* at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
      CHECK(at != MAP_FAILED);
      for (off_t i = 0; i < info.st_size; i += 4096) {
        digest = digest_more(digest, at + i, 8);
      }
      break;
    }
    CHECK(got >= 0);
    if (got == 0) break;
    // Enough of each call to notice any wrong byte's place, cheaply.
    for (ssize_t i = 0; i < got; i += 512) {
      digest = digest_more(digest, buffer + i, got - i < 16 ? (size_t)(got - i) : 16);
    }
  }
  say(digest, total);
  printf("at %ld\n", lseek(fd, 0, SEEK_CUR));
  CHECK(lseek(fd, -100, SEEK_END) > 0 && read(fd, buffer, 1000) == 100);
  say(digest_of(buffer, 100), 100);
  printf("readahead %zd", (ssize_t)readahead(fd, 0, 1 << 20));
  printf(" fadvise %d\n", posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
  printf("bad %zd", pread(fd, buffer, 10, -5));
  printf(" %d", errno);
  printf(" %zd", read(999, buffer, 10));
  printf(" %d", errno);
  printf(" %zd", read(fd, (void*)nowhere, 10));
  printf(" %d\n", errno);
  // A hole of the file is read into a mapping of another file's private copy.
  unsigned char* at =
      mmap(NULL, DATA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, open_data(argv[1]), 0);
  CHECK(at != MAP_FAILED);
  CHECK(pread(fd, at + 3 * CELL - 10, 5 * CELL, 0) == 5 * (ssize_t)CELL);
  CHECK(is_data(at + 3 * CELL - 10, 0, 5 * CELL) && is_data(at, 0, 3 * CELL - 10));
  return 0;
}
