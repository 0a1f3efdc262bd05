// open_files FOLDER COUNT: opens, fstats, reads and closes each of the first COUNT files of FOLDER
// again and again; prints the median time of a file, in nanoseconds, as JSON. Under Sluice the
// files are declared a dataset first, it waits until each is staged, and each batch of kBatch files
// is one fetch, as a DataLoader's is: copies are given within a fetch only.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/reader/pace.h"
#include "protocol/sluice.h"

enum { kMostFiles = 4096, kPasses = 9, kBatch = 32, kDeadline = 30 };

static char* paths[kMostFiles];
static char buffer[1 << 20];
static int dataset_number;  // 0 without Sluice
static int (*fetch_begin)(int);
static int (*fetch_end)(int);

static int by_name(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

static unsigned list(const char* folder, unsigned most) {
  DIR* dir = opendir(folder);
  if (dir == NULL) die(folder, strerror(errno));
  unsigned count = 0;
  for (const struct dirent* entry; count < most && (entry = readdir(dir)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    if (asprintf(&paths[count], "%s/%s", folder, entry->d_name) < 0) die("asprintf", "no memory");
    ++count;
  }
  closedir(dir);
  qsort(paths, count, sizeof *paths, by_name);
  return count;
}

// The device that the descriptor really reads, whatever fstat() answers in Sluice's place.
static dev_t device_behind(int fd) {
  struct stat about;
  return syscall(SYS_fstat, fd, &about) == 0 ? about.st_dev : 0;
}

static void await_stage(unsigned count) {
  int (*dataset)(const char*, uint64_t) = dlsym(RTLD_DEFAULT, "sluice_dataset");
  int (*locate)(int, uint64_t, const char* const*, uint64_t) =
      dlsym(RTLD_DEFAULT, "sluice_locate_files");
  int (*order)(int, uint32_t, uint64_t, const uint64_t*, uint64_t, uint32_t) =
      dlsym(RTLD_DEFAULT, "sluice_order");
  int (*begin)(int, uint64_t) = dlsym(RTLD_DEFAULT, "sluice_begin");
  int (*end)(int, uint64_t) = dlsym(RTLD_DEFAULT, "sluice_end");
  fetch_begin = dlsym(RTLD_DEFAULT, "sluice_fetch_begin");
  fetch_end = dlsym(RTLD_DEFAULT, "sluice_fetch_end");
  if (dataset == NULL) return;
  struct stat original;
  static uint64_t indices[kMostFiles];
  for (unsigned i = 0; i < count; ++i) indices[i] = i;
  const int number = dataset("open_files", count);
  if (stat(paths[0], &original) != 0 || number <= 0 ||
      locate(number, 0, (const char* const*)paths, count) != 0 ||
      order(number, 0, 0, indices, count, SLUICE_ORDER_WHOLE) != 0) {
    die("sluice", "does not take the dataset");
  }
  dataset_number = number;
  const uint64_t deadline = now_ns() + kDeadline * UINT64_C(1000000000);
  for (unsigned i = 0; i < count;) {
    fetch_begin(number);
    const int fd = open(paths[i], O_RDONLY);
    if (fd < 0) die(paths[i], strerror(errno));
    const int staged = device_behind(fd) != original.st_dev;
    close(fd);
    fetch_end(number);
    if (staged) {  // read, so that those behind it are fetched
      begin(number, i);
      end(number, i++);
    }
    if (now_ns() > deadline) die(paths[i], "is not staged");
  }
}

static void read_whole(const char* path, uint64_t* bytes) {
  const int fd = open(path, O_RDONLY);
  struct stat about;
  if (fd < 0 || fstat(fd, &about) != 0) die(path, strerror(errno));
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got != about.st_size) die(path, "is not read in one piece");
  *bytes += (uint64_t)got;
  close(fd);
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc != 3) die("usage", "open_files FOLDER COUNT");
  const unsigned most = (unsigned)atoi(argv[2]);
  const unsigned count = list(argv[1], most < kMostFiles ? most : kMostFiles);
  if (count == 0) die(argv[1], "holds no files");
  await_stage(count);
  double each[kPasses];
  uint64_t bytes = 0;
  for (unsigned pass = 0; pass < kPasses; ++pass) {
    const uint64_t started = now_ns();
    for (unsigned i = 0; i < count;) {
      const unsigned end = i + kBatch < count ? i + kBatch : count;
      if (dataset_number > 0) fetch_begin(dataset_number);
      for (; i < end; ++i) read_whole(paths[i], &bytes);
      if (dataset_number > 0) fetch_end(dataset_number);
    }
    each[pass] = (double)(now_ns() - started) / count;
  }
  qsort(each, kPasses, sizeof *each, by_value);
  printf("{\"ns\": %.1f, \"files\": %u, \"bytes\": %" PRIu64 "}\n", each[kPasses / 2], count,
         bytes);
  return 0;
}
