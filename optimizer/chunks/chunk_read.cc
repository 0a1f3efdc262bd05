#include "optimizer/chunks/chunk_read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "optimizer/io/transfer.h"
#include "optimizer/packs/checksum.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

using protocol::PackEntry;
namespace {

constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

// Reads `bytes` of the file into a buffer of whole blocks. 0, or an errno.
int read_whole(int fd, uint64_t bytes, AlignedBuffer* buffer) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got =
        pread(fd, buffer->data() + done, buffer->size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ENODATA;
    done += static_cast<uint64_t>(got);
  }
  return 0;
}

}  // namespace

void ChunkRead::read() {
  UniqueFd fd(openat(folder_, name_.c_str(), kFlags | O_DIRECT));
  if (!fd && errno == EINVAL) fd.reset(openat(folder_, name_.c_str(), kFlags));
  struct stat about {};
  if (!fd || fstat(fd.get(), &about) != 0) {
    problem_ = strerror(errno);
    return;
  }
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if (!S_ISREG(about.st_mode) || bytes > protocol::kPackMaxBytes) {
    problem_ = "not a chunk";
    return;
  }
  buffer_ = AlignedBuffer(bytes);
  int error = buffer_.size() == 0 ? ENOMEM : read_whole(fd.get(), bytes, &buffer_);
  // A short read may leave an offset that O_DIRECT does not take, and a network file system may
  // refuse it altogether.
  if (error == EINVAL) {
    fd.reset(openat(folder_, name_.c_str(), kFlags));
    error = fd ? read_fully(fd.get(), buffer_.data(), bytes, 0) : errno;
  }
  if (error != 0) {
    problem_ = error == ENODATA ? "cut short" : strerror(error);
  } else if (!head_.parse({reinterpret_cast<const char*>(buffer_.data()), bytes}, bytes,
                          &problem_)) {
    problem_ += problem_.empty() ? "damaged" : "";
  }
}

const PackEntry* ChunkRead::member(uint32_t entry, std::string_view path) {
  std::call_once(once_, [this] { read(); });
  if (!problem_.empty() || entry >= head_.entries().size()) return nullptr;
  const PackEntry& member = head_.entries()[entry];
  const PackKey key = head_.key(member);
  return key.path == path && key.offset == 0 && key.length == member.version.size ? &member
                                                                                  : nullptr;
}

int ChunkRead::copy(const PackEntry& member, int to) const {
  const std::byte* const bytes = buffer_.data() + member.at;
  if (Checksum::of(bytes, member.length) != member.checksum) return EBADMSG;
  return write_fully(to, bytes, member.length);
}

}  // namespace sluice::optimizer
