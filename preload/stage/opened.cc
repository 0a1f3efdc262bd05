#include "preload/stage/opened.h"

#include <sys/sysmacros.h>

#include <cstring>

#include "preload/base/backoff.h"
#include "preload/base/process.h"
#include "preload/base/sys.h"
#include "preload/base/thread_state.h"

namespace sluice::preload {

constinit FdTable<StagedFd> g_staged_fds;

namespace {

constinit std::atomic<uint64_t> g_serial{0};
constinit std::atomic<uint64_t> g_open{0}, g_open_bytes{0};  // of copies; never an undercount

void count_open(const StagedFd& entry) {
  g_open.fetch_add(1, std::memory_order_relaxed);
  g_open_bytes.fetch_add(entry.stat.size, std::memory_order_relaxed);
}

}  // namespace

bool StagedUse::try_begin(StagedFd* entry) {
  if ((entry->uses.fetch_add(1, std::memory_order_acq_rel) & kChangingOver) != 0) {
    entry->uses.fetch_sub(1, std::memory_order_acq_rel);
    return false;
  }
  entry_ = entry;
  outer_ = t_state.staged_use;
  t_state.staged_use = entry;
  return true;
}

void StagedUse::begin(int fd) {
  for (Backoff backoff;; backoff.wait()) {
    StagedFd* entry = staged_fd(fd);
    if (entry == nullptr || try_begin(entry)) return;
  }
}

StagedUse::StagedUse(StagedFd& entry) {
  for (Backoff backoff; !try_begin(&entry);) backoff.wait();
}

void StagedUse::end() {
  t_state.staged_use = outer_;
  entry_->uses.fetch_sub(1, std::memory_order_acq_rel);
}

bool reads_copy(int fd, const StagedFd& entry) {
  struct stat about;
  return sys::call(SYS_fstat, fd, sys::word(&about)) == 0 && about.st_dev == entry.device &&
         about.st_ino == entry.inode;
}

void release_staged(StagedFd& entry) {
  if (entry.serial.exchange(0, std::memory_order_acq_rel) == 0) return;
  entry.stream = nullptr;
  g_open.fetch_sub(1, std::memory_order_relaxed);
  g_open_bytes.fetch_sub(entry.stat.size, std::memory_order_relaxed);
}

StagedFd* staged_fd_now(int fd) {
  StagedFd* entry = staged_fd(fd);
  if (entry == nullptr || reads_copy(fd, *entry)) return entry;
  staged_fd_closed(fd);
  return nullptr;
}

bool staged_fd_opened(int fd, uint64_t device, int flags, const protocol::StageCopy& copy,
                      const char* path, size_t length) {
  StagedFd* record = length < protocol::kStagePath ? g_staged_fds.make(fd) : nullptr;
  if (record == nullptr) return false;
  StagedFd& entry = *record;
  const StagedUse use(entry);
  release_staged(entry);  // the number's last file was closed by a call that no hook saw
  entry.owner = t_state.sample_tid;
  entry.flags = flags;
  entry.device = device;
  entry.inode = copy.copy_inode;
  entry.stat = copy.stat;
  entry.length = static_cast<uint16_t>(length);
  memcpy(entry.path, path, length + 1);
  count_open(entry);
  entry.serial.store(g_serial.fetch_add(1, std::memory_order_relaxed) + 1,
                     std::memory_order_release);
  return true;
}

void staged_fd_has_stream(int fd, FILE* stream) {
  const StagedUse use(fd);
  if (StagedFd* entry = staged_fd(fd); entry != nullptr) entry->stream = stream;
}

void staged_fd_closed(int fd) {
  if (staged_fd(fd) == nullptr || in_vfork_child()) return;
  const StagedUse use(fd);  // not during a switch, which could close the number's next file
  if (StagedFd* entry = staged_fd(fd); entry != nullptr) release_staged(*entry);
}

void staged_fds_closed(unsigned first, unsigned last) {
  if (!any_staged_fd()) return;
  for (unsigned fd = first; fd <= last && fd < FdTable<StagedFd>::kAll; ++fd) {
    if (g_staged_fds.chunk(static_cast<int>(fd)) == nullptr) {
      fd |= FdTable<StagedFd>::kChunk - 1;
    } else {
      staged_fd_closed(static_cast<int>(fd));
    }
  }
}

void staged_fd_copied(int from, int to) {
  StagedFd* source = staged_fd(from);
  if (in_vfork_child()) return;
  if (source == nullptr) {
    staged_fd_closed(to);
    return;
  }
  StagedFd* record = g_staged_fds.make(to);
  if (record == nullptr) return;
  StagedFd& entry = *record;
  const StagedUse use(entry);
  release_staged(entry);
  entry.owner = source->owner;
  entry.flags = source->flags;
  entry.device = source->device;
  entry.inode = source->inode;
  entry.stat = source->stat;
  entry.length = source->length;
  memcpy(entry.path, source->path, source->length + 1U);
  count_open(entry);
  entry.serial.store(source->serial.load(std::memory_order_relaxed), std::memory_order_release);
}

uint64_t staged_fds_open() { return g_open.load(std::memory_order_relaxed); }
uint64_t staged_bytes_open() { return g_open_bytes.load(std::memory_order_relaxed); }

void staged_fds_after_fork() {
  t_state.staged_use = nullptr;
  for_each_record([](int, StagedFd& entry) {
    entry.uses.store(0, std::memory_order_relaxed);
    entry.locked = nullptr;  // libc frees the locks of a child's streams
  });
}

void fill(const protocol::StageStat& from, struct stat* to) {
  memset(to, 0, sizeof *to);
  to->st_dev = from.device;
  to->st_ino = from.inode;
  to->st_nlink = from.links;
  to->st_mode = from.mode;
  to->st_uid = from.uid;
  to->st_gid = from.gid;
  to->st_rdev = from.rdevice;
  to->st_size = static_cast<off_t>(from.size);
  to->st_blksize = static_cast<blksize_t>(from.block_size);
  to->st_blocks = static_cast<blkcnt_t>(from.blocks);
  to->st_atim = {from.accessed_s, static_cast<long>(from.accessed_ns)};
  to->st_mtim = {from.modified_s, static_cast<long>(from.modified_ns)};
  to->st_ctim = {from.changed_s, static_cast<long>(from.changed_ns)};
}

bool fill(const protocol::StageStat& from, unsigned mask, struct statx* to) {
  // Other fields are not stored, and some file systems omit fields that are not requested.
  if ((mask | STATX_BTIME) != (STATX_BASIC_STATS | STATX_BTIME)) return false;
  const bool born = (mask & STATX_BTIME) != 0;
  memset(to, 0, sizeof *to);
  to->stx_mask = born ? from.mask : from.mask & ~STATX_BTIME;
  to->stx_mnt_id = from.mount;
  to->stx_blksize = from.block_size;
  to->stx_attributes = from.attributes;
  to->stx_attributes_mask = from.attributes_mask;
  to->stx_nlink = from.links;
  to->stx_uid = from.uid;
  to->stx_gid = from.gid;
  to->stx_mode = static_cast<uint16_t>(from.mode);
  to->stx_ino = from.inode;
  to->stx_size = from.size;
  to->stx_blocks = from.blocks;
  to->stx_atime = {from.accessed_s, from.accessed_ns, {}};
  to->stx_mtime = {from.modified_s, from.modified_ns, {}};
  to->stx_ctime = {from.changed_s, from.changed_ns, {}};
  if (born) to->stx_btime = {from.born_s, from.born_ns, {}};
  to->stx_dev_major = major(from.device);
  to->stx_dev_minor = minor(from.device);
  to->stx_rdev_major = major(from.rdevice);
  to->stx_rdev_minor = minor(from.rdevice);
  return true;
}

}  // namespace sluice::preload
