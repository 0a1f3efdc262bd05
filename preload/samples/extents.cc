#include "preload/samples/extents.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "preload/samples/memory_file.h"
#include "preload/session/client.h"
#include "preload/sys.h"
#include "protocol/control.h"
#include "protocol/ring.h"

namespace sluice::preload {
namespace {

constexpr uint64_t kPiece = 128 << 10;      // samples in one message
constexpr uint64_t kPieceBytes = 16 << 20;  // of their keys, about
constexpr uint32_t kLongestKey = 511;       // bytes: LMDB's own limit
constexpr uint32_t kMask = (1U << kFileIdBits) - 1;

// The optimizer follows `path` from now on. Its id, > 0, or a negative errno. O_PATH: closing such
// a descriptor takes none of the job's locks away, and opening one waits for nobody.
long follow(const char* path) {
  const long fd = sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_PATH | O_CLOEXEC);
  if (sys::failed(fd)) return fd;
  struct stat about;
  FollowedFile followed;
  long result = sys::call(SYS_fstat, fd, sys::word(&about));
  if (result == 0 && !S_ISREG(about.st_mode)) result = -EINVAL;
  if (result == 0) {
    char link[32];
    char shown[protocol::kMaxPath];  // as the kernel names it, whatever the job called it
    snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
    const long length = sys::call(SYS_readlink, sys::word(link), sys::word(shown),
                                  static_cast<long>(sizeof shown - 1));
    shown[length > 0 ? length : 0] = '\0';
    result = follow_file(static_cast<int>(fd), about, shown, false,
                         protocol::CheckpointMode::kStream, &followed)
                 ? static_cast<long>(followed.file & kMask)
                 : -ENOTCONN;
  }
  sys::close(static_cast<int>(fd));
  return result;
}

int send(protocol::MessageKind kind, int dataset, uint64_t first, uint64_t count, long file,
         MemoryFile& memory) {
  if (!memory.flush()) return -ENOSPC;
  protocol::Samples body = {};
  body.first = first;
  body.count = count;
  body.bytes = memory.bytes();
  body.dataset = static_cast<uint32_t>(dataset) & kMask;
  body.file = static_cast<uint32_t>(file);
  return ask_in_session({.kind = kind,
                         .expected = protocol::MessageKind::kDone,
                         .body = &body,
                         .body_size = sizeof body,
                         .fd = memory.fd()});
}

int problem_with(int dataset, uint64_t first, const char* path, uint64_t count) {
  if (dataset <= 0 || path == nullptr || first > protocol::kMaxSamples ||
      count > protocol::kMaxSamples - first) {
    return -EINVAL;
  }
  return session_of_file_lives(static_cast<uint32_t>(dataset)) ? 0 : -ESTALE;
}

}  // namespace

int locate_extents(int dataset, uint64_t first, const char* path, const uint64_t* offsets,
                   const uint32_t* lengths, uint64_t count) {
  if (const int problem = problem_with(dataset, first, path, count); problem != 0) return problem;
  if (count == 0) return 0;
  const long file = follow(path);
  if (file <= 0) return static_cast<int>(file);
  for (uint64_t at = 0; at < count;) {
    MemoryFile memory;
    const uint64_t begin = at;
    for (; at < count && at - begin < kPiece; ++at) {
      const protocol::Place place = {offsets[at], lengths[at], 0};
      if (!memory.add(&place, sizeof place)) return -ENOSPC;
    }
    const int error = send(protocol::MessageKind::kLocateExtents, dataset, first + begin,
                           at - begin, file, memory);
    if (error != 0) return error;
  }
  return 0;
}

int locate_keys(int dataset, uint64_t first, const char* path, const void* keys,
                const uint32_t* lengths, uint64_t count) {
  if (const int problem = problem_with(dataset, first, path, count); problem != 0) return problem;
  if (count == 0) return 0;
  const long file = follow(path);
  if (file <= 0) return static_cast<int>(file);
  const auto* key = static_cast<const char*>(keys);
  for (uint64_t at = 0; at < count;) {
    MemoryFile memory;
    uint64_t now = 0;
    uint64_t bytes = 0;
    for (; at + now < count && now < kPiece && bytes < kPieceBytes; ++now) {
      if (lengths[at + now] > kLongestKey) return -EINVAL;
      bytes += lengths[at + now];
    }
    if (!memory.add(lengths + at, now * sizeof *lengths) || !memory.add(key, bytes)) {
      return -ENOSPC;
    }
    const int error =
        send(protocol::MessageKind::kLocateKeys, dataset, first + at, now, file, memory);
    if (error != 0) return error;
    key += bytes;
    at += now;
  }
  return 0;
}

}  // namespace sluice::preload
