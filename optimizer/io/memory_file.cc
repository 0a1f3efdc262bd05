#include "optimizer/io/memory_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice::optimizer {

bool is_as_long(int fd, uint64_t size) {
  struct stat about {};
  return fstat(fd, &about) == 0 && static_cast<uint64_t>(about.st_size) >= size;
}

bool is_memory(int fd) { return fcntl(fd, F_GET_SEALS) >= 0; }

bool read_memory(int fd, void* out, uint64_t size, uint64_t from) {
  if (!is_as_long(fd, from + size)) return false;
  for (uint64_t done = 0; done < size;) {
    const ssize_t got =
        pread(fd, static_cast<char*>(out) + done, size - done, static_cast<off_t>(from + done));
    if (got <= 0) return false;
    done += static_cast<uint64_t>(got);
  }
  return true;
}

bool write_memory(int fd, const void* data, uint64_t size) {
  if (!is_as_long(fd, size)) return false;
  for (uint64_t done = 0; done < size;) {
    const ssize_t wrote =
        pwrite(fd, static_cast<const char*>(data) + done, size - done, static_cast<off_t>(done));
    if (wrote <= 0) return false;
    done += static_cast<uint64_t>(wrote);
  }
  return true;
}

}  // namespace sluice::optimizer
