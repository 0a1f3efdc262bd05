#include "preload/samples/places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>

#include "preload/base/keep_errno.h"
#include "preload/base/lock.h"
#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/samples/memory_file.h"
#include "preload/samples/opens.h"
#include "preload/samples/sample_fds.h"
#include "preload/samples/samples.h"
#include "preload/session/client.h"
#include "preload/stage/lookup.h"
#include "protocol/control.h"
#include "protocol/ring.h"

namespace sluice::preload {
namespace {

constexpr uint64_t kMostBytes = 4 << 20;      // of paths in one message
constexpr size_t kSeenBytes = 12 << 10;       // of one message
constexpr off_t kLargestSeen = 64 << 20;      // bytes of a file
constexpr uint64_t kSeenNs = 200'000'000;     // collected for this long at most, then sent
constexpr uint64_t kFirstSeenNs = 6'000'000;  // the first ones, which may refute what was declared
constexpr uint32_t kDatasetMask = (1U << kFileIdBits) - 1;

// Files that workers opened, not sent to the optimizer yet. REQUIRES: g_seen_lock.
struct Seen {
  uint32_t dataset;
  uint32_t count;
  size_t used;
  uint64_t since_ns;
  char text[kSeenBytes];
};
constinit Spinlock g_seen_lock;
constinit Seen g_seen = {};
constinit uint64_t g_seen_ns = kFirstSeenNs;  // for how long they are collected

// Moves the collected files out, to be sent without the lock: no thread's open() waits for an
// answer. REQUIRES: g_seen_lock.
void take_locked(Seen* taken) {
  *taken = g_seen;
  g_seen.count = 0;
  g_seen.used = 0;
}

// False: no room is left, or the collected files belong to another dataset.
bool add_seen(uint32_t dataset, uint32_t sample, const StagePath& path) {
  const size_t needed = sizeof sample + path.length + 1;
  const Locked locked(g_seen_lock);
  if (g_seen.count != 0 && (g_seen.dataset != dataset || g_seen.used + needed > kSeenBytes)) {
    return false;
  }
  if (g_seen.count == 0) g_seen.since_ns = sys::now_ns();
  g_seen.dataset = dataset;
  memcpy(g_seen.text + g_seen.used, &sample, sizeof sample);
  memcpy(g_seen.text + g_seen.used + sizeof sample, path.text, path.length + 1);
  g_seen.used += needed;
  ++g_seen.count;
  return true;
}

void send(const Seen& seen) {
  protocol::Samples body = {};
  body.count = seen.count;
  body.dataset = seen.dataset;
  // Without an answer the files are reported again when they are next opened.
  ask_in_session({.kind = protocol::MessageKind::kSeen,
                  .expected = protocol::MessageKind::kDone,
                  .body = &body,
                  .body_size = sizeof body,
                  .text = seen.text,
                  .text_size = seen.used});
}

// Whether the file may be a sample and may ever be staged. A larger file (a database, an array)
// holds many samples, and is opened once, in a worker's first sample.
bool may_be_sample(int fd, uint64_t* size) {
  struct stat about;
  if (sys::call(SYS_fstat, fd, sys::word(&about)) != 0 || !S_ISREG(about.st_mode) ||
      about.st_size > kLargestSeen) {
    return false;
  }
  *size = static_cast<uint64_t>(about.st_size);
  return g_settings.stage_all || major(about.st_dev) == 0;  // a network or FUSE mount has no disk
}

}  // namespace

int locate_files(int dataset, uint64_t first, const char* const* paths, uint64_t count,
                 uint32_t each) {
  if (dataset <= 0 || (paths == nullptr && count != 0) || first > protocol::kMaxSamples ||
      count > protocol::kMaxSamples - first || each < 1 || each > protocol::kMostFilesEach) {
    return -EINVAL;
  }
  if (!session_of_file_lives(static_cast<uint32_t>(dataset))) return -ESTALE;
  char folder[protocol::kStagePath];
  const long got = sys::call(SYS_getcwd, sys::word(folder), sizeof folder);
  const size_t folder_length = got > 0 ? static_cast<size_t>(got) - 1 : 0;
  char absolute[protocol::kStagePath];
  for (uint64_t at = 0; at < count;) {
    if (const int error = may_ask(); error != 0) return error;
    MemoryFile piece;
    const uint64_t begin = at;
    for (; at < count && piece.bytes() < kMostBytes; ++at) {
      for (const char* const* path = paths + at * each; path != paths + (at + 1) * each; ++path) {
        // 0: none, or such a path has no copy.
        const size_t length = *path == nullptr
                                  ? 0
                                  : protocol::stage_path(absolute, folder, folder_length, *path,
                                                         strnlen(*path, protocol::kStagePath));
        absolute[length] = '\0';
        if (!piece.add(absolute, length + 1)) return -ENOSPC;
      }
    }
    protocol::Samples about = {};
    about.dataset = static_cast<uint32_t>(dataset);
    about.first = first + begin;
    about.count = at - begin;
    about.each = each;
    const int error = send_samples(protocol::MessageKind::kLocate, about, piece);
    if (error != 0) return error;
  }
  return 0;
}

void file_seen(int fd, int folder, const char* path) {
  const protocol::Stage* stage = g_stage.load(std::memory_order_acquire);
  const uint64_t key = current_sample();
  const bool watched = opens_are_watched();
  if ((stage == nullptr || key == 0) && !watched) return;
  if (in_vfork_child()) return;
  if (process_is_new()) process_after_fork();
  const KeepErrno keep;
  StagePath absolute;
  uint64_t size = 0;
  if (!may_be_sample(fd, &size) || !absolute_path(folder, path, &absolute)) return;
  if (watched) note_opened(absolute.text, absolute.length);
  if (stage == nullptr || key == 0) return;
  const uint32_t dataset = protocol::dataset_of(key) & kDatasetMask;
  const auto sample = static_cast<uint32_t>(protocol::index_of(key));
  sample_fd_opened(fd, key, size, absolute.text, absolute.length);
  while (!add_seen(dataset, sample, absolute)) send_seen_files(true);
}

// Not inlined: open() may be called where the stack is small.
__attribute__((noinline)) void send_seen_files(bool now) {
  // Read without the lock: at worst the files are sent a little later.
  if (__atomic_load_n(&g_seen.count, __ATOMIC_RELAXED) == 0) return;
  const KeepErrno keep;
  Seen seen;
  {
    const Locked locked(g_seen_lock);
    if (g_seen.count == 0 || (!now && sys::now_ns() - g_seen.since_ns < g_seen_ns)) return;
    g_seen_ns = g_seen_ns < kSeenNs ? g_seen_ns * 2 : kSeenNs;
    take_locked(&seen);
  }
  send(seen);
}

void places_after_fork() {
  sample_fds_after_fork();
  g_seen_lock.reset();
  opens_after_fork();
  g_seen_ns = kFirstSeenNs;
  g_seen.count = 0;
  g_seen.used = 0;
}

}  // namespace sluice::preload
