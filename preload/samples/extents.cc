#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "preload/base/own_descriptor.h"
#include "preload/base/sys.h"
#include "preload/samples/memory_file.h"
#include "preload/samples/places.h"
#include "preload/session/client.h"
#include "protocol/control.h"
#include "protocol/ring.h"

namespace sluice::preload {
namespace {

constexpr uint64_t kPiece = 128 << 10;      // samples in one message
constexpr uint64_t kPieceBytes = 16 << 20;  // of keys in one message, approximately
constexpr uint32_t kLongestKey = 511;       // bytes: LMDB's own limit

// Makes the optimizer follow `path`. Returns its id for events, > 0, or a negative errno. O_PATH:
// closing such a descriptor releases none of the job's locks, and opening one never blocks.
long follow(const char* path) {
  const OwnDescriptor fd(sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_PATH | O_CLOEXEC));
  if (fd.number() < 0) return fd.number();
  struct stat about;
  const long looked = sys::call(SYS_fstat, fd.number(), sys::word(&about));
  if (looked != 0) return looked;
  if (!S_ISREG(about.st_mode)) return -EINVAL;
  char link[32];
  char shown[protocol::kMaxPath];  // as the kernel names it
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd.number());
  const long length = sys::call(SYS_readlink, sys::word(link), sys::word(shown),
                                static_cast<long>(sizeof shown - 1));
  shown[length > 0 ? length : 0] = '\0';
  FollowedFile followed;
  // A job that closed all descriptors meanwhile may have reused the number.
  if (!fd.ours() || !follow_file(fd.number(), about, shown, false,
                                 protocol::CheckpointMode::kStream, &followed)) {
    return -ENOTCONN;
  }
  return static_cast<long>(followed.file);
}

int problem_with(int dataset, uint64_t first, const char* path, uint64_t count) {
  if (dataset <= 0 || path == nullptr || first > protocol::kMaxSamples ||
      count > protocol::kMaxSamples - first) {
    return -EINVAL;
  }
  return session_of_file_lives(static_cast<uint32_t>(dataset)) ? 0 : -ESTALE;
}

// Sends locations of samples of one dataset in one file; `problem` is 0, or a negative errno.
struct LocationSender {
  LocationSender(int dataset, uint64_t first, const char* path, uint64_t count)
      : problem(problem_with(dataset, first, path, count)) {
    about.dataset = static_cast<uint32_t>(dataset);
    about.first = first;
    if (problem != 0 || count == 0) return;
    const long file = follow(path);
    if (file <= 0) {
      problem = static_cast<int>(file);
    } else {
      about.file = static_cast<uint32_t>(file);
    }
  }
  // Sends the next `count` samples.
  void send(protocol::MessageKind kind, uint64_t count, MemoryFile& memory) {
    about.count = count;
    problem = send_samples(kind, about, memory);
    about.first += count;
  }
  protocol::Samples about = {};
  int problem;
};

}  // namespace

int locate_extents(int dataset, uint64_t first, const char* path, const uint64_t* offsets,
                   const uint32_t* lengths, uint64_t count) {
  LocationSender sender(dataset, first, path, count);
  for (uint64_t at = 0; at < count && sender.problem == 0;) {
    MemoryFile memory;
    const uint64_t begin = at;
    for (; at < count && at - begin < kPiece; ++at) {
      const protocol::Place place = {offsets[at], lengths[at], 0};
      if (!memory.add(&place, sizeof place)) return -ENOSPC;
    }
    sender.send(protocol::MessageKind::kLocateExtents, at - begin, memory);
  }
  return sender.problem;
}

int locate_keys(int dataset, uint64_t first, const char* path, const void* keys,
                const uint32_t* lengths, uint64_t count) {
  LocationSender sender(dataset, first, path, count);
  const auto* key = static_cast<const char*>(keys);
  for (uint64_t at = 0; at < count && sender.problem == 0;) {
    MemoryFile memory;
    const uint64_t begin = at;
    uint64_t bytes = 0;
    for (; at < count && at - begin < kPiece && bytes < kPieceBytes; ++at) {
      if (lengths[at] > kLongestKey) return -EINVAL;
      bytes += lengths[at];
    }
    if (!memory.add(lengths + begin, (at - begin) * sizeof *lengths) || !memory.add(key, bytes)) {
      return -ENOSPC;
    }
    key += bytes;
    sender.send(protocol::MessageKind::kLocateKeys, at - begin, memory);
  }
  return sender.problem;
}

}  // namespace sluice::preload
