#include "preload/stage/written.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>
#include <cerrno>

#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/session/client.h"
#include "preload/stage/lookup.h"
#include "preload/stage/original.h"

namespace sluice::preload {
namespace {

// A Bloom filter of written files.
constexpr uint32_t kWrittenBits = 1U << 15;
constinit std::atomic<uint64_t> g_written[kWrittenBits / 64] = {};
constinit std::atomic<bool> g_wrote{false};

// An optimizer that is stopped let this process wait, which has no index to see that from: it
// does not insist again.
constinit std::atomic<bool> g_unanswered{false};

// Files mapped before there was a stage. Beyond this number the oldest are overwritten.
constexpr uint32_t kMappedBefore = 256;
// If the optimizer does not learn of the change, other processes may read the old contents: so this
// waits for a busy optimizer, for longer than the silence that marks it as stopped or dead.
constexpr uint64_t kSettleNs = 3'000'000'000;

struct Mapped {
  std::atomic<uint64_t> device, inode;
};
constinit Mapped g_mapped[kMappedBefore] = {};
constinit std::atomic<uint32_t> g_mapped_count{0};

uint64_t written_hash(uint64_t device, uint64_t inode) {
  const uint64_t mixed = (device * 0x9e3779b97f4a7c15ULL ^ inode) * 0xff51afd7ed558ccdULL;
  return mixed ^ mixed >> 32;
}

bool regular(int fd, struct stat* about) {
  return sys::call(SYS_fstat, fd, sys::word(about)) == 0 && S_ISREG(about->st_mode);
}

// Shared memory is mapped often, and only SLUICE_STAGE=always stages what lies in memory already.
bool may_be_staged(int fd) {
  struct statfs about;
  return g_settings.stage_all || sys::call(SYS_fstatfs, fd, sys::word(&about)) != 0 ||
         about.f_type != TMPFS_MAGIC;
}

}  // namespace

void note_written(uint64_t device, uint64_t inode) {
  const uint64_t hash = written_hash(device, inode);
  for (const uint64_t bit : {hash % kWrittenBits, (hash >> 16) % kWrittenBits}) {
    g_written[bit / 64].fetch_or(1ULL << bit % 64, std::memory_order_relaxed);
  }
  g_wrote.store(true, std::memory_order_release);
}

bool maybe_written(uint64_t device, uint64_t inode) {
  if (!g_wrote.load(std::memory_order_acquire)) return false;
  const uint64_t hash = written_hash(device, inode);
  for (const uint64_t bit : {hash % kWrittenBits, (hash >> 16) % kWrittenBits}) {
    if ((g_written[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1) == 0) return false;
  }
  return true;
}

void settle(uint64_t device, uint64_t inode, bool mapped) {
  const protocol::Stage* stage = g_stage.load(std::memory_order_acquire);
  protocol::Settle body = {};
  body.device = device;
  body.inode = inode;
  body.mapped = mapped ? 1 : 0;
  // A process without the index cannot see the heartbeat; those with it use no copy after so long.
  const uint64_t deadline =
      sys::now_ns() + (stage != nullptr ? kSettleNs : protocol::kStageSilentNs);
  const bool insists = stage != nullptr || !g_unanswered.load(std::memory_order_relaxed);
  for (;;) {
    const int error = ask_in_session({.kind = protocol::MessageKind::kSettle,
                                      .expected = protocol::MessageKind::kDone,
                                      .body = &body,
                                      .body_size = sizeof body,
                                      .insist = insists,
                                      .start = false});
    if (error != -ETIMEDOUT || !insists) return;
    if (stage != nullptr && stage_silent(*stage)) return;
    if (sys::now_ns() <= deadline) continue;
    g_unanswered.store(true, std::memory_order_relaxed);
    return;
  }
}

void opened_for_writing(int fd) {
  struct stat about;
  if (!g_settings.stage || in_vfork_child() || !regular(fd, &about)) return;
  note_written(about.st_dev, about.st_ino);
  use_originals_of(about.st_dev, about.st_ino);
}

void mapped_shared(int fd) {
  if (!g_settings.stage || in_vfork_child()) return;
  const long flags = sys::call(SYS_fcntl, fd, F_GETFL);
  struct stat about;
  if (sys::failed(flags) || (flags & O_ACCMODE) != O_RDWR || !regular(fd, &about)) return;
  note_written(about.st_dev, about.st_ino);  // another process may have opened the descriptor
  if (!may_be_staged(fd)) return;
  const protocol::Stage* stage = g_stage.load(std::memory_order_acquire);
  if (stage == nullptr) {
    Mapped& mapped =
        g_mapped[g_mapped_count.fetch_add(1, std::memory_order_relaxed) % kMappedBefore];
    mapped.device.store(about.st_dev, std::memory_order_relaxed);
    mapped.inode.store(about.st_ino, std::memory_order_relaxed);
  }
  if (process_is_new()) process_after_fork();
  const int saved = errno;
  settle(about.st_dev, about.st_ino, true);
  errno = saved;
}

void report_mapped() {
  const protocol::Stage* stage = g_stage.load(std::memory_order_acquire);
  const uint32_t count = g_mapped_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; stage != nullptr && i < count && i < kMappedBefore; ++i) {
    settle(g_mapped[i].device.load(std::memory_order_relaxed),
           g_mapped[i].inode.load(std::memory_order_relaxed), true);
  }
}

}  // namespace sluice::preload
