// Steps that move bytes: reads of all kinds, stdio, transfers between descriptors, io_uring; and
// those that map files.
#include <liburing.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "tests/differential/executor.h"

static size_t amount(const struct step* step, int index) {
  const long wanted = number(step, index);
  return wanted < 0 ? 0 : wanted > kBuffer ? kBuffer : (size_t)wanted;
}

static void read_it(const struct step* step) {
  say_bytes(read(*slot(step, 1), g_buffer, amount(step, 2)), g_buffer);
}
static void read_at(const struct step* step) {
  say_bytes(pread(*slot(step, 1), g_buffer, amount(step, 2), number(step, 3)), g_buffer);
}
static int split(const struct step* step, struct iovec parts[3]) {  // three parts, one empty
  const size_t all = amount(step, 2), first = all / 3;
  parts[0] = (struct iovec){g_buffer, first};
  parts[1] = (struct iovec){g_buffer + first, 0};
  parts[2] = (struct iovec){g_buffer + first, all - first};
  return 3;
}
static void read_parts(const struct step* step) {
  struct iovec parts[3];
  say_bytes(readv(*slot(step, 1), parts, split(step, parts)), g_buffer);
}
static void read_parts_at(const struct step* step) {
  struct iovec parts[3];
  say_bytes(preadv(*slot(step, 1), parts, split(step, parts), number(step, 3)), g_buffer);
}
static void read_rest(const struct step* step) {
  long all = 0;
  uint64_t value = 1;
  ssize_t got;
  const size_t piece = amount(step, 2) ? amount(step, 2) : 4096;
  while ((got = read(*slot(step, 1), g_buffer, piece)) > 0) {
    value = digest(value, g_buffer, (size_t)got);
    all += got;
  }
  if (got < 0) {
    say_result(-1);
  } else {
    say("%ld %016lx", all, value);
  }
}
// The whole file within one sample, opened and closed for it.
static void load(const struct step* step) {
  begin_sample(number(step, 1));
  const int fd = open(path(step, 2), O_RDONLY | O_CLOEXEC);
  count_open(fd);
  const ssize_t got = fd < 0 ? -1 : read(fd, g_buffer, kBuffer);
  say_bytes(got, g_buffer);
  if (fd >= 0) close(fd);
  end_sample(number(step, 1));
}

static void stdio_load(const struct step* step) {
  begin_sample(number(step, 1));
  FILE* file = fopen(path(step, 2), word(step, 3));
  if (file == NULL) {
    say_result(-1);
  } else {
    count_open(fileno(file));
    const size_t piece = amount(step, 4) ? amount(step, 4) : 100;
    long all = 0;
    uint64_t value = 1;
    for (size_t got; (got = fread(g_buffer, 1, piece, file)) > 0; all += (long)got)
      value = digest(value, g_buffer, got);
    fseek(file, 10, SEEK_SET);
    const int one = fgetc(file);
    say("%ld %016lx %d at %ld", all, value, one, ftell(file));
    fclose(file);
  }
  end_sample(number(step, 1));
}

static void send_it(const struct step* step) {  // to a pipe, and out of it again
  int ends[2];
  off_t from = number(step, 3);
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    say_result(-1);
    return;
  }
  const size_t wanted = amount(step, 2) > 32768 ? 32768 : amount(step, 2);
  const bool splices = word(step, 0)[1] == 'p';
  const long sent = splices ? splice(*slot(step, 1), from < 0 ? NULL : &from, ends[1], NULL, wanted,
                                     SPLICE_F_NONBLOCK)
                            : sendfile(ends[1], *slot(step, 1), from < 0 ? NULL : &from, wanted);
  say_result(sent);
  if (sent > 0) say_bytes(read(ends[0], g_buffer, kBuffer), g_buffer);
  if (from >= 0) say("at %ld", (long)from);
  close(ends[0]);
  close(ends[1]);
}
static void copy_range(const struct step* step) {
  const int to = open(path(step, 3), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (to < 0) {
    say_result(-1);
    return;
  }
  loff_t from = number(step, 4);
  const long copied =
      copy_file_range(*slot(step, 1), from < 0 ? NULL : &from, to, NULL, amount(step, 2), 0);
  say_result(copied);
  if (copied > 0) say_bytes(pread(to, g_buffer, kBuffer, 0), g_buffer);
  close(to);
}
static void ring_read(const struct step* step) {
  // The ring would take the number of a descriptor that is closed, and wait for itself.
  if (syscall(SYS_fcntl, *slot(step, 1), F_GETFD) < 0) {
    say_result(-1);
    return;
  }
  struct io_uring ring;
  const int result = io_uring_queue_init(2, &ring, 0);
  if (result < 0) {
    say("no ring");
    return;
  }
  struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
  io_uring_prep_read(entry, *slot(step, 1), g_buffer, (unsigned)amount(step, 2),
                     (uint64_t)number(step, 3));
  io_uring_submit(&ring);
  struct io_uring_cqe* done = NULL;
  int waited;
  while ((waited = io_uring_wait_cqe(&ring, &done)) == -EINTR) {
  }
  if (waited == 0) {
    const long got = done->res;
    errno = got < 0 ? (int)-got : 0;
    say_bytes(got < 0 ? -1 : got, g_buffer);
  }
  io_uring_queue_exit(&ring);
}

static void write_it(const struct step* step) {
  memset(g_buffer, (int)number(step, 3), amount(step, 2));
  say_result(write(*slot(step, 1), g_buffer, amount(step, 2)));
}
static void write_at(const struct step* step) {
  memset(g_buffer, (int)number(step, 4), amount(step, 2));
  say_result(pwrite(*slot(step, 1), g_buffer, amount(step, 2), number(step, 3)));
}
static void truncate_fd(const struct step* step) {
  say_result(ftruncate(*slot(step, 1), number(step, 2)));
}
static void chmod_fd(const struct step* step) {
  say_result(fchmod(*slot(step, 1), (mode_t)number(step, 2)));
}
static void set_times(const struct step* step) {
  const struct timespec times[2] = {{1500000000, 0}, {1500000001, 5}};
  say_result(futimens(*slot(step, 1), times));
}

const struct operation kReadOperations[] = {{"read", read_it},
                                            {"pread", read_at},
                                            {"readv", read_parts},
                                            {"preadv", read_parts_at},
                                            {"readrest", read_rest},
                                            {"load", load},
                                            {"fload", stdio_load},
                                            {"sendfile", send_it},
                                            {"splice", send_it},
                                            {"copyrange", copy_range},
                                            {"uring", ring_read},
                                            {"write", write_it},
                                            {"pwrite", write_at},
                                            {"ftruncate", truncate_fd},
                                            {"fchmod", chmod_fd},
                                            {"futimens", set_times},
                                            {NULL, NULL}};

// Mappings.

static void map(const struct step* step) {
  struct shared_map* into = map_slot(step, 1);
  const size_t size = (size_t)number(step, 3);
  const bool shared = strchr(word(step, 5), 's') != NULL,
             writable = strchr(word(step, 5), 'w') != NULL;
  const int populate = strchr(word(step, 5), 'p') != NULL ? MAP_POPULATE : 0;
  void* at = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0),
                  (shared ? MAP_SHARED : MAP_PRIVATE) | populate, *slot(step, 2), number(step, 4));
  say_result(at == MAP_FAILED ? -1 : 0);
  if (at != MAP_FAILED) *into = (struct shared_map){at, size, writable};
}

// Calls `use` with bytes of a mapping that may end before the mapping does.
static void with_bytes(const struct step* step,
                       void (*use)(const struct step*, unsigned char*, size_t)) {
  const struct shared_map* from = map_slot(step, 1);
  const size_t start = (size_t)number(step, 2), wanted = amount(step, 3);
  if (from->at == NULL || start >= from->size) {
    say("no mapping");
    return;
  }
  const size_t size = wanted < from->size - start ? wanted : from->size - start;
  if (sigsetjmp(g_jump, 1) != 0) {
    say("no page");
    return;
  }
  g_jump_armed = true;
  use(step, from->at + start, size);
  g_jump_armed = false;
}
static void use_read(const struct step* step, unsigned char* at, size_t size) {
  (void)step;
  say_bytes((long)size, at);
}
static void use_write(const struct step* step, unsigned char* at, size_t size) {
  if (map_slot(step, 1)->writable) {
    memset(at, (int)number(step, 4), size);
    say("written");
  }
}
static void use_pipe(const struct step* step, unsigned char* at,
                     size_t size) {  // a buffer of write()
  (void)step;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  const long sent = write(ends[1], at, size > 32768 ? 32768 : size);
  say_result(sent);
  if (sent > 0) say_bytes(read(ends[0], g_buffer, kBuffer), g_buffer);
  close(ends[0]);
  close(ends[1]);
}
static void map_read(const struct step* step) { with_bytes(step, use_read); }
static void map_write(const struct step* step) { with_bytes(step, use_write); }
static void map_pipe(const struct step* step) { with_bytes(step, use_pipe); }
static void unmap(const struct step* step) {
  struct shared_map* from = map_slot(step, 1);
  if (from->at == NULL) return;
  say_result(munmap(from->at, from->size));
  from->at = NULL;
}
static void advise(const struct step* step) {
  const struct shared_map* from = map_slot(step, 1);
  if (from->at != NULL) say_result(madvise(from->at, from->size, (int)number(step, 2)));
}
static void protect(const struct step* step) {
  struct shared_map* from = map_slot(step, 1);
  if (from->at == NULL) return;
  const int result = mprotect(from->at, from->size, PROT_READ | (number(step, 2) ? PROT_WRITE : 0));
  say_result(result);
  if (result == 0) from->writable = number(step, 2) != 0;
}
static void remap(const struct step* step) {
  struct shared_map* from = map_slot(step, 1);
  if (from->at == NULL) return;
  void* at = mremap(from->at, from->size, (size_t)number(step, 2), MREMAP_MAYMOVE);
  say_result(at == MAP_FAILED ? -1 : 0);
  if (at != MAP_FAILED) {
    from->at = at;
    from->size = (size_t)number(step, 2);
  }
}
// What user code reads is handed to read() as its buffer: into private, writable pages of a file.
static void use_into(const struct step* step, unsigned char* at, size_t size) {
  if (!map_slot(step, 1)->writable) return;
  const long got = pread(*slot(step, 4), at, size, 0);
  say_bytes(got, at);
}
static void map_into(const struct step* step) { with_bytes(step, use_into); }

const struct operation kMapOperations[] = {
    {"mmap", map},         {"mread", map_read}, {"mwrite", map_write},
    {"mpipe", map_pipe},   {"munmap", unmap},   {"madvise", advise},
    {"mprotect", protect}, {"mremap", remap},   {"mpreadinto", map_into},
    {NULL, NULL}};
