#include "preload/stage/opened.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "preload/fds.h"
#include "preload/process.h"
#include "preload/stage/probe.h"
#include "preload/sys.h"

namespace sluice::preload {

constinit std::atomic<StagedFd*> g_staged_fds[kStagedFdChunks] = {};

constinit std::atomic<uint64_t> g_stage_device{0};

namespace {

constinit std::atomic<uint64_t> g_serial{0};
constexpr mode_t kCopyMode = S_IFREG | 0400;
constinit std::atomic<uint64_t> g_open{0};  // that read copies, about: fewer never

StagedFd* chunk_of(int fd) {
  std::atomic<StagedFd*>& place = g_staged_fds[fd / kStagedFdChunk];
  StagedFd* chunk = place.load(std::memory_order_acquire);
  if (chunk != nullptr) return chunk;
  constexpr size_t kBytes = sizeof(StagedFd) * kStagedFdChunk;
  const long memory = sys::call(SYS_mmap, 0, kBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (sys::failed(memory)) return nullptr;
  auto* fresh = reinterpret_cast<StagedFd*>(memory);  // zeros are free records
  if (place.compare_exchange_strong(chunk, fresh, std::memory_order_acq_rel)) return fresh;
  sys::call(SYS_munmap, memory, kBytes);
  return chunk;
}

bool in_table(int fd) { return fd >= 0 && fd < kStagedFdChunk * kStagedFdChunks; }

bool same_file(const struct stat& about, const protocol::StageStat& was) {
  return about.st_dev == was.device && about.st_ino == was.inode &&
         static_cast<uint64_t>(about.st_size) == was.size &&
         about.st_mtim.tv_sec == was.modified_s && about.st_mtim.tv_nsec == was.modified_ns;
}

}  // namespace

bool is_copy(const StagedFd& entry, const struct stat& real) {
  return real.st_dev == g_stage_device.load(std::memory_order_relaxed) &&
         real.st_mode == kCopyMode && static_cast<uint64_t>(real.st_size) == entry.stat.size;
}

StagedFd* surely_staged_fd(int fd) {
  StagedFd* entry = staged_fd(fd);
  struct stat real;
  if (entry == nullptr || sys::call(SYS_fstat, fd, sys::word(&real)) != 0) return nullptr;
  return is_copy(*entry, real) ? entry : nullptr;
}

bool staged_fd_opened(int fd, int flags, const protocol::StageCopy& copy, const char* path,
                      size_t length) {
  StagedFd* chunk = in_table(fd) && length < protocol::kStagePath ? chunk_of(fd) : nullptr;
  if (chunk == nullptr) return false;
  StagedFd& entry = chunk[fd % kStagedFdChunk];
  entry.flags = flags;
  entry.stat = copy.stat;
  entry.length = static_cast<uint16_t>(length);
  memcpy(entry.path, path, length + 1);
  g_open.fetch_add(1, std::memory_order_relaxed);
  entry.serial.store(g_serial.fetch_add(1, std::memory_order_relaxed) + 1,
                     std::memory_order_release);
  return true;
}

void staged_fd_closed(int fd) {
  StagedFd* entry = staged_fd(fd);
  if (entry == nullptr || in_vfork_child()) return;
  entry->serial.store(0, std::memory_order_release);
  g_open.fetch_sub(1, std::memory_order_relaxed);
}

void staged_fds_closed(unsigned first, unsigned last) {
  if (g_open.load(std::memory_order_relaxed) == 0) return;
  constexpr unsigned kAll = kStagedFdChunk * kStagedFdChunks;
  for (unsigned fd = first; fd <= last && fd < kAll; ++fd) {
    if (g_staged_fds[fd / kStagedFdChunk].load(std::memory_order_relaxed) == nullptr) {
      fd |= kStagedFdChunk - 1;
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
  StagedFd* chunk = in_table(to) ? chunk_of(to) : nullptr;
  if (chunk == nullptr) return;
  staged_fd_closed(to);
  StagedFd& entry = chunk[to % kStagedFdChunk];
  entry.flags = source->flags;
  entry.stat = source->stat;
  entry.length = source->length;
  memcpy(entry.path, source->path, source->length + 1U);
  g_open.fetch_add(1, std::memory_order_relaxed);
  entry.serial.store(source->serial.load(std::memory_order_relaxed), std::memory_order_release);
}

void use_original(int fd) {
  StagedFd* entry = staged_fd(fd);
  if (entry == nullptr || in_vfork_child()) return;
  if (surely_staged_fd(fd) == nullptr) {
    staged_fd_closed(fd);
    return;
  }
  constexpr int kOnce = O_CREAT | O_EXCL | O_TRUNC;
  const long original = sys::call(SYS_openat, AT_FDCWD, sys::word(entry->path),
                                  (entry->flags & ~kOnce) | O_CLOEXEC, 0);
  if (sys::failed(original)) return;
  struct stat about;
  if (sys::call(SYS_fstat, original, sys::word(&about)) != 0 || !same_file(about, entry->stat)) {
    sys::close(static_cast<int>(original));
    return;
  }
  const long offset = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  if (offset > 0) sys::call(SYS_lseek, original, offset, SEEK_SET);
  const uint64_t serial = entry->serial.load(std::memory_order_relaxed);
  for (int chunk = 0; chunk < kStagedFdChunks; ++chunk) {
    StagedFd* entries = g_staged_fds[chunk].load(std::memory_order_acquire);
    for (int i = 0; entries != nullptr && i < kStagedFdChunk; ++i) {
      if (entries[i].serial.load(std::memory_order_acquire) != serial) continue;
      const int number = chunk * kStagedFdChunk + i;
      const long marks = sys::call(SYS_fcntl, number, F_GETFD);
      if (sys::failed(marks)) continue;
      entries[i].serial.store(0, std::memory_order_release);
      g_open.fetch_sub(1, std::memory_order_relaxed);
      sys::call(SYS_dup3, original, number, (marks & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
    }
  }
  sys::close(static_cast<int>(original));
}

bool any_staged_fd() { return g_open.load(std::memory_order_relaxed) != 0; }

void use_original_of(const char* path) {
  static constexpr const char* kFolders[] = {"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"};
  if (!any_staged_fd() || path == nullptr || !page_readable(path) || path[0] != '/' ||
      (path[1] != 'p' && path[1] != 'd')) {
    return;
  }
  for (const char* folder : kFolders) {
    const size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0) continue;
    int fd = 0;
    const char* at = path + length;
    if (*at == '\0') return;
    for (; *at >= '0' && *at <= '9' && fd < kStagedFdChunk * kStagedFdChunks; ++at) {
      fd = fd * 10 + (*at - '0');
    }
    if (*at == '\0') use_original(fd);
    return;
  }
}

void use_originals_for_exec() {
  if (g_open.load(std::memory_order_relaxed) == 0 || in_vfork_child()) return;
  for (int chunk = 0; chunk < kStagedFdChunks; ++chunk) {
    if (g_staged_fds[chunk].load(std::memory_order_acquire) == nullptr) continue;
    for (int i = 0; i < kStagedFdChunk; ++i) {
      const int number = chunk * kStagedFdChunk + i;
      if (staged_fd(number) == nullptr) continue;
      const long marks = sys::call(SYS_fcntl, number, F_GETFD);
      if (!sys::failed(marks) && (marks & FD_CLOEXEC) == 0) use_original(number);
    }
  }
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
  // What else may be asked for is not kept.
  if ((mask & ~(STATX_BASIC_STATS | STATX_BTIME)) != 0) return false;
  memset(to, 0, sizeof *to);
  to->stx_mask = from.mask;
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
  to->stx_btime = {from.born_s, from.born_ns, {}};
  to->stx_dev_major = major(from.device);
  to->stx_dev_minor = minor(from.device);
  to->stx_rdev_major = major(from.rdevice);
  to->stx_rdev_minor = minor(from.rdevice);
  return true;
}

}  // namespace sluice::preload
