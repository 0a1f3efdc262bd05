// opened_ahead ORIGINALS COPIES COUNT BATCH AGE_MS: what a job would pay for originals that a
// sidecar has opened and read ahead, and hands over with SCM_RIGHTS, beside what it pays for copies
// in a memory file system. A holder process opens and reads COUNT files with kThreads threads, once
// for each pass, as each open needs a description of its own; AGE_MS milliseconds later the job
// asks for them, BATCH a message, and fstats, reads and closes each. Then, or before, it opens,
// fstats, reads and closes the copies. Prints the medians of a file, in nanoseconds, as JSON.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/reader/pace.h"

enum { kMostFiles = 1000, kMostBatch = 64, kPasses = 5, kThreads = 64 };

static const char* folders[2];  // of originals, of copies
static char* names[kMostFiles];
static unsigned count, batch;
static int held[kMostFiles];
static char buffer[1 << 20];

static int by_name(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

static unsigned list(const char* folder, unsigned most) {
  DIR* dir = opendir(folder);
  if (dir == NULL) die(folder, strerror(errno));
  unsigned found = 0;
  for (const struct dirent* entry; found < most && (entry = readdir(dir)) != NULL;) {
    if (entry->d_name[0] != '.') names[found++] = strdup(entry->d_name);
  }
  closedir(dir);
  qsort(names, found, sizeof *names, by_name);
  return found;
}

static int open_in(const char* folder, unsigned i) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, names[i]);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) die(path, strerror(errno));
  return fd;
}

static void* open_ahead(void* next) {
  char* own = malloc(sizeof buffer);
  for (unsigned i; (i = atomic_fetch_add((atomic_uint*)next, 1)) < count;) {
    held[i] = open_in(folders[0], i);
    if (pread(held[i], own, sizeof buffer, 0) < 0) die(names[i], strerror(errno));
  }
  free(own);
  return NULL;
}

static void send_batch(int to, unsigned first, unsigned end) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int) * kMostBatch)];
  } control = {{0}};
  char byte = 0;
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes};
  message.msg_controllen = CMSG_SPACE(sizeof(int) * (end - first));
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int) * (end - first));
  memcpy(CMSG_DATA(head), held + first, sizeof(int) * (end - first));
  if (sendmsg(to, &message, 0) != 1) die("sendmsg", strerror(errno));
  for (unsigned i = first; i < end; ++i) close(held[i]);
}

// Each pass: opens, says so, and answers each question for a batch.
static void hold(int job) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (unsigned pass = 0; pass < kPasses; ++pass) {
    pthread_t threads[kThreads];
    atomic_uint next = 0;
    for (unsigned i = 0; i < kThreads; ++i) {
      if (pthread_create(&threads[i], NULL, open_ahead, &next) != 0) die("thread", "cannot start");
    }
    for (unsigned i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    if (write(job, "", 1) != 1) die("holder", strerror(errno));
    unsigned first = 0;
    while (first < count && read(job, buffer, 1) == 1) {
      const unsigned end = first + batch < count ? first + batch : count;
      send_batch(job, first, end);
      first = end;
    }
  }
  exit(0);
}

static unsigned receive(int from, int* fds) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int) * kMostBatch)];
  } control;
  char byte = 0;
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes};
  message.msg_controllen = sizeof control.bytes;
  if (write(from, "", 1) != 1 || recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1) {
    die("recvmsg", strerror(errno));
  }
  const struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head == NULL) die("recvmsg", "no descriptors");
  memcpy(fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
  return (unsigned)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

static uint64_t read_whole(int fd, unsigned i) {
  struct stat about;
  if (fstat(fd, &about) != 0) die(names[i], strerror(errno));
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got != about.st_size) die(names[i], "is not read in one piece");
  close(fd);
  return (uint64_t)got;
}

static double handed_over(int holder, unsigned age_ms, uint64_t* bytes) {
  if (read(holder, buffer, 1) != 1) die("holder", "has ended");
  usleep(age_ms * 1000);
  const uint64_t started = now_ns();
  for (unsigned i = 0; i < count;) {
    int fds[kMostBatch];
    const unsigned got = receive(holder, fds);
    for (unsigned k = 0; k < got; ++k, ++i) *bytes += read_whole(fds[k], i);
  }
  return (double)(now_ns() - started) / count;
}

static double copied(uint64_t* bytes) {
  const uint64_t started = now_ns();
  for (unsigned i = 0; i < count; ++i) *bytes += read_whole(open_in(folders[1], i), i);
  return (double)(now_ns() - started) / count;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc != 6) die("usage", "opened_ahead ORIGINALS COPIES COUNT BATCH AGE_MS");
  folders[0] = argv[1];
  folders[1] = argv[2];
  const unsigned most = (unsigned)atoi(argv[3]);
  count = list(folders[1], most < kMostFiles ? most : kMostFiles);
  batch = (unsigned)atoi(argv[4]);
  if (count == 0 || batch == 0 || batch > kMostBatch) die("usage", "COUNT files, BATCH of 1 to 64");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) die("socketpair", "failed");
  const pid_t holder = fork();
  if (holder == 0) hold(ends[1]);
  close(ends[1]);
  double handed[kPasses];
  double copies[kPasses];
  uint64_t of_originals = 0;
  uint64_t of_copies = 0;
  copied(&of_copies);  // warm
  of_copies = 0;
  for (unsigned pass = 0; pass < kPasses; ++pass) {
    if (pass % 2 == 0) copies[pass] = copied(&of_copies);
    handed[pass] = handed_over(ends[0], (unsigned)atoi(argv[5]), &of_originals);
    if (pass % 2 != 0) copies[pass] = copied(&of_copies);
  }
  int status = 0;
  waitpid(holder, &status, 0);
  if (status != 0 || of_originals != of_copies) die("the holder", "ended, or gave other bytes");
  qsort(handed, kPasses, sizeof *handed, by_value);
  qsort(copies, kPasses, sizeof *copies, by_value);
  printf("{\"handed_ns\": %.1f, \"copy_ns\": %.1f, \"files\": %u, \"bytes\": %" PRIu64 "}\n",
         handed[kPasses / 2], copies[kPasses / 2], count, of_originals);
  return 0;
}
