#include "lmdb/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lmdb/failure.h"

namespace sluice::lmdb {

// Opened non-blocking, so that a FIFO in place of a file is refused instead of waited for.
File::File(std::string path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail("cannot open {}: {}", path_, strerror(errno));
  struct stat status {};
  const bool known = fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail("{} is not a file", path_);
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

File::~File() { ::close(descriptor_); }

void File::read(uint64_t offset, std::span<uint8_t> out) const {
  while (!out.empty()) {
    const ssize_t got = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read {}: {}", path_, strerror(errno));
    if (got == 0) fail("{} is truncated: it ends before byte {}", path_, offset + out.size());
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
}

std::vector<uint8_t> read_file(const std::string& path) {
  const File file(path);
  std::vector<uint8_t> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

}  // namespace sluice::lmdb
