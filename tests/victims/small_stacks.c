// Handlers on alternate stacks of the smallest sizes that people use, which open, read, stat, map
// and close files of data, and end the process from there: small_stacks ... [sample]. With
// `sample` a sample is begun in each child, if there is something to report.
#include "tests/victims/victim.h"

// sluice.h's, where the library is.
int sluice_dataset(const char* name, uint64_t count) __attribute__((weak));
int sluice_begin(int dataset, uint64_t index) __attribute__((weak));

static const char* path;
static bool in_sample;
static volatile bool ends;
static size_t stack_bytes;
static uint64_t digest;

static void handler(int number) {
  (void)number;
  if (ends) _exit(7);
  unsigned char bytes[512];
  struct stat about;
  int fd = open("data/file3", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &about) != 0 || read(fd, bytes, sizeof bytes) != sizeof bytes) _exit(8);
  digest = digest_of(bytes, sizeof bytes) + (uint64_t)about.st_size;
  if (close(fd) != 0 || stat("data/file4", &about) != 0 || access("data/file5", R_OK) != 0)
    _exit(9);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || pread(fd, bytes, sizeof bytes, 8 * CELL) != sizeof bytes) _exit(10);
  digest ^= digest_of(bytes, sizeof bytes);
  // No promise of POSIX's, and done all the same.
  const unsigned char* at = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED || !is_data(at + 9 * CELL, 9 * CELL, 2 * CELL)) _exit(11);
  if (close(fd) != 0 || munmap((void*)at, DATA_SIZE) != 0) _exit(12);
}

static void child(void* how) {
  // Whatever lies below the stack must not be written.
  size_t guard = 1 << 20;
  char* below = mmap(NULL, stack_bytes + guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(below != MAP_FAILED);
  CHECK(mprotect(below + guard, stack_bytes, PROT_READ | PROT_WRITE) == 0);
  stack_t stack = {.ss_sp = below + guard, .ss_size = stack_bytes};
  CHECK(sigaltstack(&stack, NULL) == 0);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  if (how == NULL) {
    raise(SIGUSR1);  // the first thing that has to do with data
    printf("  %016lx\n", digest);
    fflush(stdout);
    ends = true;
    raise(SIGUSR1);
  }
  if (in_sample && sluice_dataset != NULL && sluice_begin != NULL) {
    sluice_begin(sluice_dataset("set", 10), 3);
  }
  const unsigned char* at = map_data(path);
  CHECK(is_data(at, 0, DATA_SIZE / 2));
  for (int i = 0; i < 10; ++i) {
    char name[32], bytes[700];
    snprintf(name, sizeof name, "data/file%d", i);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, bytes, sizeof bytes) == sizeof bytes && close(fd) == 0);
  }
  raise(SIGUSR1);
  printf("  %016lx\n", digest);
  fflush(stdout);
  ends = true;
  raise(SIGUSR1);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  path = argv[1];
  in_sample = argc > 4;
  for (int i = 0; i < 10; ++i) {
    char name[32], bytes[700];
    snprintf(name, sizeof name, "data/file%d", i);
    memset(bytes, 'a' + i, sizeof bytes);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, bytes, sizeof bytes) == sizeof bytes && close(fd) == 0);
  }
  // The kernel's own frame takes up to 3.5 KiB of it.
  static const size_t sizes[] = {32768, 16384, 12288, 8192};
  for (int i = 0; i < 4; ++i) {
    stack_bytes = sizes[i];
    char what[64];
    snprintf(what, sizeof what, "%zu bytes", stack_bytes);
    in_child(what, child, what);
    in_child("data in the handler first", child, NULL);
  }
  // The first process of all, too.
  stack_bytes = 8192;
  child(argv);
  return 0;
}
