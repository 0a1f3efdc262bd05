// A job that closes all its descriptors and reuses the numbers: close_all ... loop|range|from|
// numbers. No foreign byte may ever be in its files, and the first free number stays the same.
#include <dirent.h>

#include "tests/victims/victim.h"

static void list(const char* what) {
  printf("%s:", what);
  for (int i = 0; i < 1024; ++i) {
    if (fcntl(i, F_GETFD) >= 0) printf(" %d", i);
  }
  printf("\n");
}

int main(int argc, char** argv) {
  CHECK(argc > 4);
  const char* how = argv[4];
  list("at first");
  int fd = open_data(argv[1]);
  printf("first %d\n", fd);
  unsigned char* at = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && is_data(at, 0, DATA_SIZE / 4));
  int big = open_data(argv[2]);
  static char buffer[100000];
  CHECK(read(big, buffer, sizeof buffer) == sizeof buffer);
  printf("second %d\n", big);
  list("mapped");
  if (!strcmp(how, "numbers")) {
    for (int i = 0; i < 5; ++i) {
      FILE* file = fopen(argv[1], "r");
      printf("%d %d %d\n", fileno(file), dup(0), open(argv[3], O_RDONLY | O_DIRECTORY));
    }
    list("many");
  }
  if (!strcmp(how, "loop")) {
    for (int i = 3; i < 1024; ++i) close(i);
  }
  if (!strcmp(how, "range")) CHECK(close_range(3, ~0U, 0) == 0);
  if (!strcmp(how, "from")) closefrom(3);
  list("closed");
  CHECK(is_data(at + DATA_SIZE / 4, DATA_SIZE / 4, DATA_SIZE / 4));
  char name[32];
  int files[60];
  for (int i = 0; i < 60; ++i) {
    snprintf(name, sizeof name, "mine-%d", i);
    files[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    printf("%d ", files[i]);
    CHECK(files[i] > 2 && write(files[i], name, strlen(name)) == (ssize_t)strlen(name));
    size_t offset = DATA_SIZE / 2 + (size_t)i * CELL;
    CHECK(is_data(at + offset, offset, CELL));  // events go on flowing
  }
  printf("\n");
  fd = open_data(argv[1]);
  void* again = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(again != MAP_FAILED && is_data(again, 0, DATA_SIZE));
  for (int i = 0; i < 60; ++i) {
    snprintf(name, sizeof name, "mine-%d", i);
    char found[64] = "";
    ssize_t size = pread(files[i], found, sizeof found, 0);
    if (size != (ssize_t)strlen(name) || memcmp(found, name, strlen(name)) != 0) {
      printf("foreign bytes in %s: %zd\n", name, size);
    }
    CHECK(lseek(files[i], 0, SEEK_CUR) == (off_t)strlen(name));
  }
  list("at last");
  return 0;
}
