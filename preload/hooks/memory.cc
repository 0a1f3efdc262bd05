// Calls that make or change mappings. A mapping is disarmed before a call changes it: the kernel
// then handles the call as without Sluice.
#include <sys/mman.h>

#include <cerrno>
#include <cstdarg>

#include "preload/base/real.h"
#include "preload/cells/arm.h"
#include "preload/handler/mapping.h"
#include "preload/samples/pages.h"
#include "preload/samples/sample_fds.h"
#include "preload/stage/original.h"
#include "preload/stage/written.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

namespace {

template <typename Map>
void* map(Map real, void* address, size_t length, int prot, int flags, int fd, off_t offset) {
  if ((flags & MAP_FIXED) != 0) disarm(address, length);
  // A mapping outlives descriptor and window, must show later writes, and would pin evicted copies.
  if ((flags & MAP_ANONYMOUS) == 0) use_original(fd);
  void* result = real(address, length, prot, flags, fd, offset);
  // Out of VMAs: disarming frees those of re-armed pages.
  if (result == MAP_FAILED && errno == ENOMEM && disarm_all()) {
    result = real(address, length, prot, flags, fd, offset);
  }
  if (result == MAP_FAILED) return result;
  forget_stale(result, length);
  if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
    sample_fd_mapped(fd);
    if ((flags & MAP_TYPE) != MAP_PRIVATE) mapped_shared(fd);
    consider_mapping(result, length, prot, flags, fd, offset);
  }
  return result;
}

// Advice with the same effect on protected and on open pages, which preserves guard regions.
bool harmless(int advice) {
  switch (advice) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTNEED:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
      return true;
    default:
      return false;
  }
}

// posix_madvise() has the same numbers for these.
bool says_how_it_reads(int advice) {
  return advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL;
}

}  // namespace

SLUICE_EXPORT void* mmap(void* address, size_t length, int prot, int flags, int fd,
                         off_t offset) noexcept {
  return map(REAL(mmap), address, length, prot, flags, fd, offset);
}
SLUICE_EXPORT void* mmap64(void* address, size_t length, int prot, int flags, int fd,
                           off64_t offset) noexcept {
  return map(REAL(mmap64), address, length, prot, flags, fd, offset);
}
SLUICE_EXPORT int munmap(void* address, size_t length) noexcept {
  page_watch_unmaps(address, length);
  disarm(address, length);
  return REAL(munmap)(address, length);
}
SLUICE_EXPORT void* mremap(void* address, size_t length, size_t new_length, int flags,
                           ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* target = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  disarm(address, length);
  if (target != nullptr) disarm(target, new_length);
  return REAL(mremap)(address, length, new_length, flags, target);
}
SLUICE_EXPORT int mprotect(void* address, size_t length, int prot) noexcept {
  disarm(address, length);
  int result = REAL(mprotect)(address, length, prot);
  if (result != 0 && errno == ENOMEM && disarm_all()) {
    result = REAL(mprotect)(address, length, prot);
  }
  return result;
}
SLUICE_EXPORT int pkey_mprotect(void* address, size_t length, int prot, int key) noexcept {
  disarm(address, length);
  return REAL(pkey_mprotect)(address, length, prot, key);
}
SLUICE_EXPORT int madvise(void* address, size_t length, int advice) noexcept {
  if (!harmless(advice)) disarm(address, length);
  const int result = REAL(madvise)(address, length, advice);
  if (result == 0 && says_how_it_reads(advice)) note_advice(address, length, advice);
  return result;
}
SLUICE_EXPORT int posix_madvise(void* address, size_t length, int advice) noexcept {
  const int result = REAL(posix_madvise)(address, length, advice);
  if (result == 0 && says_how_it_reads(advice)) note_advice(address, length, advice);
  return result;
}
SLUICE_EXPORT int mlock(const void* address, size_t length) noexcept {
  disarm(address, length);
  return REAL(mlock)(address, length);
}
SLUICE_EXPORT int mlock2(const void* address, size_t length, unsigned flags) noexcept {
  disarm(address, length);
  return REAL(mlock2)(address, length, flags);
}
SLUICE_EXPORT int mlockall(int flags) noexcept {
  disarm_all();
  const int result = REAL(mlockall)(flags);
  if (result == 0) set_future_locked((flags & MCL_FUTURE) != 0);
  return result;
}
SLUICE_EXPORT int munlockall() noexcept {
  const int result = REAL(munlockall)();
  if (result == 0) set_future_locked(false);
  return result;
}
SLUICE_EXPORT int remap_file_pages(void* address, size_t length, int prot, size_t page,
                                   int flags) noexcept {
  disarm(address, length);
  return REAL(remap_file_pages)(address, length, prot, page, flags);
}
