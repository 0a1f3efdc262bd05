// What a job does to a mapping after it was made: surgery ... KIND. Prints what it reads there.
#include "tests/victims/victim.h"

static const char* path;
static unsigned char* at;
static sigjmp_buf back;
static volatile long fault_at;
static volatile int fault_code, fault_signal;

static void on_fault(int number, siginfo_t* info, void* context) {
  (void)context;
  fault_signal = number;
  fault_code = info->si_code;
  fault_at = (unsigned char*)info->si_addr - at;
  siglongjmp(back, 1);
}

static void catch_faults(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
}

// Touches at[offset] and says what became of it.
static void touch(size_t offset, bool write_it) {
  volatile unsigned char* place = at + offset;
  if (sigsetjmp(back, 1) == 0) {
    if (write_it) {
      *place = (unsigned char)(*place + 1);
      printf("wrote at %zu: %d\n", offset, *place);
    } else {
      printf("read at %zu: %d\n", offset, *place);
    }
  } else {
    printf("%s at %zu: signal %d code %d at %ld\n", write_it ? "write" : "read", offset,
           fault_signal, fault_code, fault_at);
  }
}

static void touch_all(void) {
  for (size_t offset = 5; offset < DATA_SIZE; offset += 3 * CELL / 2) touch(offset, false);
  touch(DATA_SIZE - 1, false);
}

static void* map(int protection, int flags) {
  int fd = open(path, flags & MAP_SHARED && protection & PROT_WRITE ? O_RDWR : O_RDONLY);
  CHECK(fd >= 0);
  at = mmap(NULL, DATA_SIZE, protection, flags, fd, 0);
  CHECK(at != MAP_FAILED && close(fd) == 0);
  return at;
}

static void say_digest(void) { printf("%016lx\n", digest_of(at, DATA_SIZE)); }

static void unmap_parts(void) {
  map(PROT_READ, MAP_SHARED);
  touch(10, false);
  CHECK(munmap(at + 10 * CELL, 3 * CELL) == 0);            // whole cells
  CHECK(munmap(at + 30 * CELL + PAGE, 5 * PAGE) == 0);     // within a cell
  CHECK(munmap(at + 40 * CELL - PAGE, 2 * PAGE) == 0);     // across an edge
  CHECK(munmap(at, PAGE) == 0);                            // the head
  CHECK(munmap(at + DATA_SIZE / PAGE * PAGE, PAGE) == 0);  // the tail
  CHECK(munmap(at + 50 * CELL, 0) == -1 && munmap(at + 1, PAGE) == -1);
  touch_all();
  touch(0, false);
  touch(30 * CELL + PAGE, false);
  touch(30 * CELL + 6 * PAGE, false);
  touch(40 * CELL, false);
  touch(40 * CELL + PAGE, false);
  // Something else in the hole, at the same place.
  CHECK(mmap(at + 10 * CELL, CELL, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at + 10 * CELL);
  touch(10 * CELL, true);
  touch(10 * CELL + PAGE, true);
  CHECK(munmap(at, DATA_SIZE) == 0);
  touch(20 * CELL, false);
}

static void fixed_over(void) {
  map(PROT_READ, MAP_SHARED);
  touch(5, false);
  CHECK(mmap(at + 7 * CELL + PAGE, 4 * CELL, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + 7 * CELL + PAGE);
  int fd = open_data(path);
  CHECK(mmap(at + 20 * CELL, 5 * CELL, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 33 * (off_t)PAGE) ==
        at + 20 * CELL);
  CHECK(mmap(at + 60 * CELL, 5 * CELL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
        at + 60 * CELL);
  CHECK(close(fd) == 0);
  touch_all();
  touch(7 * CELL + PAGE, true);
  touch(9 * CELL, true);
  touch(20 * CELL, true);
  touch(61 * CELL, true);
  CHECK(is_data(at + 20 * CELL, 33 * PAGE, 5 * CELL));
  say_digest();
}

static void remap(void) {
  map(PROT_READ, MAP_SHARED);
  for (size_t i = 0; i < 20; i += 2) touch(i * CELL, false);
  unsigned char* moved = mremap(at, DATA_SIZE, DATA_SIZE / 2, 0);  // shrink
  CHECK(moved == at);
  touch(DATA_SIZE / 2 / PAGE * PAGE + 2 * PAGE, false);
  moved = mremap(at, DATA_SIZE / 2, DATA_SIZE, MREMAP_MAYMOVE);  // grow
  CHECK(moved != MAP_FAILED);
  at = moved;
  say_digest();
  for (size_t i = 30; i < 60; i += 3) touch(i * CELL, false);
  void* room = mmap(NULL, DATA_SIZE + CELL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  moved = mremap(at, DATA_SIZE, DATA_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, room);  // move
  CHECK(moved == room);
  unsigned char* old = at;
  at = moved;
  say_digest();
  at = old;
  touch(CELL, false);
  at = moved;
  // A part out of the middle, cut from both sides.
  room = mmap(NULL, 8 * CELL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char* part =
      mremap(at + 50 * CELL, 6 * CELL, 6 * CELL, MREMAP_MAYMOVE | MREMAP_FIXED, room);
  CHECK(part == room);
  CHECK(is_data(part, 50 * CELL, 6 * CELL));
  touch(50 * CELL, false);
  touch(49 * CELL, false);
  touch(56 * CELL, false);
  // A second view of the same pages.
  unsigned char* twin = mremap(at, 0, 10 * CELL, MREMAP_MAYMOVE);
  CHECK(twin != MAP_FAILED);
  CHECK(is_data(twin, 0, 10 * CELL) && is_data(at, 0, 10 * CELL));
  CHECK(munmap(twin, 10 * CELL) == 0);
  printf("bad %d", mremap(at + 1, PAGE, PAGE, 0) == MAP_FAILED);
  printf(" %d\n", errno);
}

static void protect(void) {
  map(PROT_READ, MAP_PRIVATE);
  touch(3 * CELL, false);
  CHECK(mprotect(at + 4 * CELL, 8 * CELL, PROT_NONE) == 0);
  touch(4 * CELL, false);
  touch(11 * CELL, false);
  touch(12 * CELL, false);
  CHECK(mprotect(at + 5 * CELL, 8 * CELL, PROT_READ | PROT_WRITE) == 0);
  touch(6 * CELL, true);
  touch(12 * CELL, true);
  touch(4 * CELL, true);
  CHECK(mprotect(at, DATA_SIZE, PROT_READ) == 0);
  touch(6 * CELL, false);
  touch(6 * CELL, true);
  say_digest();
  CHECK(mprotect(at, DATA_SIZE, PROT_NONE) == 0);
  touch_all();
  CHECK(mprotect(at, DATA_SIZE, PROT_READ) == 0);
  touch_all();
  say_digest();
  CHECK(mprotect(at + 30 * CELL, PAGE, PROT_READ | PROT_EXEC) == 0);
  touch(30 * CELL, false);
  printf("bad %d", mprotect(at + 1, PAGE, PROT_READ));
  printf(" %d\n", errno);
  map(PROT_READ, MAP_SHARED);
  printf("shared, file read-only: %d", mprotect(at, PAGE, PROT_READ | PROT_WRITE));
  printf(" %d\n", errno);
  say_digest();
}

static void lock(void) {
  map(PROT_READ, MAP_SHARED);
  touch(2 * CELL, false);
  printf("mlock %d\n", mlock(at + CELL, 4 * CELL));
  touch(3 * CELL, false);
  printf("mlock2 %d\n", mlock2(at + 10 * CELL, PAGE, MLOCK_ONFAULT));
  printf("munlock %d\n", munlock(at + CELL, 4 * CELL));
  printf("mlock %d\n", mlock(at, 6 * CELL));
  say_digest();
  CHECK(munlock(at, DATA_SIZE) == 0);
  map(PROT_READ, MAP_PRIVATE);
  touch(3 * CELL, false);
  CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
  say_digest();
  map(PROT_READ, MAP_SHARED);  // this one is born locked
  say_digest();
  CHECK(munlockall() == 0);
  int fd = open_data(path);
  at = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  CHECK(at != MAP_FAILED);
  unsigned char in_core[DATA_SIZE / PAGE + 1];
  CHECK(mincore(at, DATA_SIZE, in_core) == 0);
  printf("populated %d\n", in_core[100] & 1);
  say_digest();
}

static void advise(void) {
  static const int advice[] = {MADV_RANDOM,   MADV_SEQUENTIAL, MADV_WILLNEED,     MADV_DONTNEED,
                               MADV_NORMAL,   MADV_COLD,       MADV_PAGEOUT,      MADV_DONTDUMP,
                               MADV_DONTFORK, MADV_DOFORK,     MADV_POPULATE_READ};
  for (int private = 0; private < 2; ++private) {
    map(PROT_READ, private ? MAP_PRIVATE : MAP_SHARED);
    touch(CELL, false);
    for (size_t i = 0; i < sizeof advice / sizeof *advice; ++i) {
      int got = madvise(at + i * 3 * CELL + PAGE, 9 * CELL + PAGE, advice[i]);
      printf("madvise %d: %d %d\n", advice[i], got, got ? errno : 0);
      touch(i * 3 * CELL + 2 * PAGE, false);
      got = posix_madvise(at, 2 * CELL, POSIX_MADV_WILLNEED);
      CHECK(got == 0);
    }
    say_digest();
    CHECK(munmap(at, DATA_SIZE) == 0);
  }
}

static void copy_on_write(void) {
  map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
  for (size_t i = 0; i < 100; i += 7) touch(i * CELL + 11, true);
  say_digest();
  unsigned char* first = at;
  map(PROT_READ, MAP_PRIVATE);
  touch(20 * CELL, false);
  CHECK(mprotect(at + 20 * CELL, 20 * CELL, PROT_READ | PROT_WRITE) == 0);
  for (size_t i = 19; i < 42; ++i) touch(i * CELL + 11, true);
  CHECK(mprotect(at, DATA_SIZE, PROT_READ) == 0);
  say_digest();
  CHECK(madvise(at, DATA_SIZE, MADV_DONTNEED) == 0);  // the copies are gone
  say_digest();
  CHECK(munmap(first, DATA_SIZE) == 0);
}

static void put(const char* name, size_t first, size_t last, int flags) {
  int fd = open(name, O_WRONLY | flags, 0600);
  CHECK(fd >= 0);
  for (size_t offset = first; offset < last; offset += PAGE) {
    unsigned char page[PAGE];
    for (size_t i = 0; i < PAGE; ++i) page[i] = data_byte(offset + i);
    size_t size = last - offset < PAGE ? last - offset : PAGE;
    CHECK(pwrite(fd, page, size, (off_t)offset) == (ssize_t)size);
  }
  CHECK(close(fd) == 0);
}

static void grow(void) {
  put("data/grows", 0, 4 * CELL + 100, O_CREAT);
  int fd = open("data/grows", O_RDWR);
  at = mmap(NULL, 40 * CELL, PROT_READ, MAP_SHARED, fd, 0);  // far beyond the end
  CHECK(at != MAP_FAILED);
  CHECK(is_data(at, 0, 4 * CELL + 100));
  touch(4 * CELL + 101, false);   // the rest of the last page is zero
  touch(4 * CELL + PAGE, false);  // SIGBUS
  touch(4 * CELL + PAGE + 77, false);
  touch(39 * CELL, false);
  put("data/grows", 4 * CELL, 20 * CELL + 9, 0);
  CHECK(is_data(at, 0, 20 * CELL + 9));
  touch(20 * CELL + 2 * PAGE, false);
  CHECK(ftruncate(fd, 2 * (off_t)CELL) == 0);
  touch(2 * CELL - 1, false);
  touch(2 * CELL, false);
  touch(10 * CELL, false);
  put("data/grows", 2 * CELL, 40 * CELL, 0);
  CHECK(is_data(at, 0, 40 * CELL));
  printf("%016lx\n", digest_of(at, 40 * CELL));
  // What another descriptor writes is seen through the mapping at once.
  CHECK(pwrite(fd, "changed", 7, 30 * (off_t)CELL + 5) == 7);
  CHECK(memcmp(at + 30 * CELL + 5, "changed", 7) == 0);
  CHECK(close(fd) == 0 && unlink("data/grows") == 0);
  CHECK(is_data(at, 0, 30 * CELL));
}

static void writable(void) {
  put("data/mine", 0, DATA_SIZE, O_CREAT);
  int fd = open("data/mine", O_RDWR);
  at = mmap(NULL, DATA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  for (size_t i = 0; i < 100; i += 3) touch(i * CELL + 70, true);
  CHECK(msync(at, DATA_SIZE, MS_SYNC) == 0);
  say_digest();
  unsigned char* reader = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  at[17 * CELL] ^= 1;
  CHECK(reader[17 * CELL] == at[17 * CELL]);
  CHECK(memcmp(reader, at, DATA_SIZE) == 0);
  CHECK(mprotect(reader, CELL, PROT_READ | PROT_WRITE) == 0);
  reader[9] = 'r';
  CHECK(at[9] == 'r');
  CHECK(msync(reader, DATA_SIZE, MS_ASYNC) == 0);
}

int main(int argc, char** argv) {
  CHECK(argc > 4);
  path = argv[1];
  catch_faults();
  static const struct {
    const char* name;
    void (*run)(void);
  } kinds[] = {{"unmap", unmap_parts}, {"fixed", fixed_over}, {"remap", remap},
               {"protect", protect},   {"lock", lock},        {"advise", advise},
               {"cow", copy_on_write}, {"grow", grow},        {"writable", writable}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (!strcmp(kinds[i].name, argv[4])) kinds[i].run();
  }
  return 0;
}
