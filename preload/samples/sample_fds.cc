#include "preload/samples/sample_fds.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "preload/base/keep_errno.h"
#include "preload/base/lock.h"
#include "preload/base/process.h"
#include "preload/base/sys.h"
#include "preload/samples/samples.h"
#include "preload/session/client.h"

namespace sluice::preload {

using protocol::FileUse;

constinit FdTable<SampleFd> g_sample_fds;

namespace {

// Fetching a whole file of this size costs hardly more than a request for a part of it, so its use
// makes no difference, unless it is locked: a copy cannot be locked in its place.
constexpr uint64_t kSmall = 256 << 10;
// A file is read in part if less than 1/kPart of its bytes is read.
constexpr uint64_t kPart = 2;

// What was recently reported of files. REQUIRES: g_told_lock.
struct Reported {
  uint64_t file = 0;
  uint32_t findings = 0;  // FileUses
};
constexpr uint32_t kReported = 256;
constinit Spinlock g_told_lock;
constinit Reported g_reported[kReported] = {};

// Whether to report this use. That a file was read whole is reported only if the contrary was.
bool is_news(uint64_t file, FileUse use) {
  const auto bit = static_cast<uint32_t>(use);
  const Locked locked(g_told_lock);
  Reported& reported = g_reported[file % kReported];
  if (reported.file != file) {
    if (use == FileUse::kReadWhole) return false;
    reported = {file, 0};
  }
  if ((reported.findings & bit) != 0) return false;
  if (use == FileUse::kReadWhole &&
      (reported.findings & static_cast<uint32_t>(FileUse::kReadInPart)) == 0) {
    return false;
  }
  reported.findings |= bit;
  return true;
}

}  // namespace

void sample_fd_opened(int fd, uint64_t key, uint64_t size, const char* path, size_t length) {
  SampleFd* record = length < protocol::kStagePath ? g_sample_fds.make(fd) : nullptr;
  if (record == nullptr) return;
  SampleFd& entry = *record;
  entry.key.store(0, std::memory_order_relaxed);  // the number's last file was closed unseen
  entry.read.store(0, std::memory_order_relaxed);
  entry.size = size;
  entry.length = static_cast<uint16_t>(length);
  memcpy(entry.path, path, length);
  entry.path[length] = '\0';
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (size_t i = 0; i < length; ++i) {
    hash = (hash ^ static_cast<unsigned char>(path[i])) * 0x100000001b3;
  }
  entry.file = hash;
  entry.key.store(key, std::memory_order_release);
}

void found_use(SampleFd& entry, FileUse use) {
  if (entry.size <= kSmall && use != FileUse::kLocked) return;
  if (in_vfork_child() || !is_news(entry.file, use)) return;
  if (process_is_new()) process_after_fork();
  const KeepErrno keep;
  protocol::UsedFile body = {};
  body.use = use;
  // Without an answer the next process finds and reports the use again.
  ask_in_session({.kind = protocol::MessageKind::kFileUse,
                  .expected = protocol::MessageKind::kDone,
                  .body = &body,
                  .body_size = sizeof body,
                  .text = entry.path,
                  .text_size = entry.length + 1U});
}

void sample_fd_was_read(SampleFd& entry, uint64_t bytes) {
  entry.read.fetch_add(bytes, std::memory_order_relaxed);
  const uint64_t now = current_sample();
  if (now != 0 && now != entry.key.load(std::memory_order_relaxed)) {
    found_use(entry, FileUse::kShared);
  }
}

void sample_fd_was_closed(int fd, SampleFd& entry) {
  if (in_vfork_child()) return;
  if (entry.size > kSmall) {
    const long offset = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
    const uint64_t counted = entry.read.load(std::memory_order_relaxed);
    const uint64_t to = sys::failed(offset) ? 0 : static_cast<uint64_t>(offset);
    // The offset, which seeks move too, is used only if no hook counted a read.
    const uint64_t read = counted != 0 ? counted : to;
    if (read != 0) {
      found_use(entry, read < entry.size / kPart ? FileUse::kReadInPart : FileUse::kReadWhole);
    }
  }
  entry.key.store(0, std::memory_order_release);
}

void sample_fds_after_fork() { g_told_lock.reset(); }

}  // namespace sluice::preload
