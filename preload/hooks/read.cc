// Reading. No logic: call, report, preserve errno.
#include "preload/base/real.h"
#include "preload/cells/renew.h"
#include "preload/cells/retry.h"
#include "preload/files/fds.h"
#include "preload/files/read_watch.h"
#include "preload/samples/sample_fds.h"
#include "preload/stage/copy_range.h"
#include "preload/stage/original.h"

using sluice::preload::copy_range_of_staged;
using sluice::preload::fd_read;
using sluice::preload::fd_read_at;
using sluice::preload::fd_sought;
using sluice::preload::ReadWatch;
using sluice::preload::renew_if_lost;
using sluice::preload::retrying;
using sluice::preload::sample_fd_read;
using sluice::preload::StagedUse;
using sluice::preload::use_original;

namespace {

// `wanted`: 0 if a short read does not imply the file's end.
ssize_t was_read(const ReadWatch& watch, int fd, ssize_t bytes, size_t wanted = 0) {
  const uint64_t end_ns = watch.end_ns();
  renew_if_lost();
  fd_read(fd, bytes, wanted);
  watch.done(fd, bytes, end_ns);
  sample_fd_read(fd, bytes);
  return bytes;
}
ssize_t was_read_at(const ReadWatch& watch, int fd, ssize_t bytes, off_t offset,
                    size_t wanted = 0) {
  const uint64_t end_ns = watch.end_ns();
  fd_read_at(fd, bytes, offset, wanted);
  watch.done(fd, bytes, end_ns);
  sample_fd_read(fd, bytes);
  return bytes;
}
// SEEK_DATA and SEEK_HOLE need the original, and so do very large offsets, since the largest offset
// depends on the file system.
void seeks(int fd, off_t offset, int whence) {
  constexpr off_t kFar = 1LL << 40;
  if (whence > SEEK_END || offset > kFar) use_original(fd);
}
// Bytes left in the buffer, which a read of `file` takes without a system call. Read without the
// stream's lock: a wrong number costs a clock read, or an error of a few bytes in the count.
size_t buffered(const FILE* file) {
  return static_cast<size_t>(file->_IO_read_end - file->_IO_read_ptr);
}

// Programs that read a few bytes a call pay only for calls that enter the kernel; the bytes that
// these read into the buffer are counted, not the bytes that the program took.
template <typename Call>
size_t read_stream(FILE* file, size_t size, size_t items, Call call) {
  const size_t before = buffered(file);
  size_t wanted = 0;
  if (!__builtin_mul_overflow(size, items, &wanted) && wanted <= before) return call();
  const int fd = fileno_unlocked(file);
  const ReadWatch watch(fd);
  const size_t got = call();
  const auto bytes = static_cast<ssize_t>(got * size + buffered(file) - before);
  if (bytes > 0) {
    was_read(watch, fd, bytes);
  } else {
    watch.done(fd, 0, watch.end_ns());
  }
  return got;
}
off_t was_sought(int fd, off_t offset) {
  fd_sought(fd);
  return offset;
}

}  // namespace

SLUICE_EXPORT ssize_t read(int fd, void* buffer, size_t size) {
  const StagedUse use(fd);
  const ReadWatch watch(fd);
  return was_read(watch, fd, REAL(read)(fd, buffer, size), size);
}
SLUICE_EXPORT ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  const ReadWatch watch(fd);
  return was_read_at(watch, fd, REAL(pread)(fd, buffer, size, offset), offset, size);
}
SLUICE_EXPORT ssize_t pread64(int fd, void* buffer, size_t size, off64_t offset) {
  const ReadWatch watch(fd);
  return was_read_at(watch, fd, REAL(pread64)(fd, buffer, size, offset), offset, size);
}
SLUICE_EXPORT ssize_t readv(int fd, const struct iovec* parts, int count) {
  const StagedUse use(fd);
  const ReadWatch watch(fd);
  return was_read(watch, fd, retrying([&] { return REAL(readv)(fd, parts, count); }, {parts}));
}
SLUICE_EXPORT ssize_t preadv(int fd, const struct iovec* parts, int count, off_t offset) {
  const ReadWatch watch(fd);
  return was_read_at(
      watch, fd, retrying([&] { return REAL(preadv)(fd, parts, count, offset); }, {parts}), offset);
}
SLUICE_EXPORT ssize_t preadv64(int fd, const struct iovec* parts, int count, off64_t offset) {
  const ReadWatch watch(fd);
  return was_read_at(watch, fd,
                     retrying([&] { return REAL(preadv64)(fd, parts, count, offset); }, {parts}),
                     offset);
}
// Offset -1 is the descriptor's own.
SLUICE_EXPORT ssize_t preadv2(int fd, const struct iovec* parts, int count, off_t offset,
                              int flags) {
  const StagedUse use(fd);
  const ReadWatch watch(fd);
  const ssize_t bytes =
      retrying([&] { return REAL(preadv2)(fd, parts, count, offset, flags); }, {parts});
  return offset == -1 ? was_read(watch, fd, bytes) : was_read_at(watch, fd, bytes, offset);
}
SLUICE_EXPORT ssize_t preadv64v2(int fd, const struct iovec* parts, int count, off64_t offset,
                                 int flags) {
  const StagedUse use(fd);
  const ReadWatch watch(fd);
  const ssize_t bytes =
      retrying([&] { return REAL(preadv64v2)(fd, parts, count, offset, flags); }, {parts});
  return offset == -1 ? was_read(watch, fd, bytes) : was_read_at(watch, fd, bytes, offset);
}
SLUICE_EXPORT ssize_t __read_chk(int fd, void* buffer, size_t size, size_t limit) {
  const StagedUse use(fd);
  const ReadWatch watch(fd);
  return was_read(watch, fd, REAL(__read_chk)(fd, buffer, size, limit), size);
}
SLUICE_EXPORT ssize_t __pread_chk(int fd, void* buffer, size_t size, off_t offset, size_t limit) {
  const ReadWatch watch(fd);
  return was_read_at(watch, fd, REAL(__pread_chk)(fd, buffer, size, offset, limit), offset, size);
}
SLUICE_EXPORT ssize_t __pread64_chk(int fd, void* buffer, size_t size, off64_t offset,
                                    size_t limit) {
  const ReadWatch watch(fd);
  return was_read_at(watch, fd, REAL(__pread64_chk)(fd, buffer, size, offset, limit), offset, size);
}
SLUICE_EXPORT size_t fread(void* buffer, size_t size, size_t items, FILE* file) {
  return read_stream(file, size, items, [&] { return REAL(fread)(buffer, size, items, file); });
}
SLUICE_EXPORT size_t fread_unlocked(void* buffer, size_t size, size_t items, FILE* file) {
  return read_stream(file, size, items,
                     [&] { return REAL(fread_unlocked)(buffer, size, items, file); });
}
SLUICE_EXPORT size_t __fread_chk(void* buffer, size_t limit, size_t size, size_t items,
                                 FILE* file) {
  return read_stream(file, size, items,
                     [&] { return REAL(__fread_chk)(buffer, limit, size, items, file); });
}
SLUICE_EXPORT size_t __fread_unlocked_chk(void* buffer, size_t limit, size_t size, size_t items,
                                          FILE* file) {
  return read_stream(file, size, items,
                     [&] { return REAL(__fread_unlocked_chk)(buffer, limit, size, items, file); });
}
SLUICE_EXPORT off_t lseek(int fd, off_t offset, int whence) noexcept {
  seeks(fd, offset, whence);
  const StagedUse use(fd);
  return was_sought(fd, REAL(lseek)(fd, offset, whence));
}
SLUICE_EXPORT off64_t lseek64(int fd, off64_t offset, int whence) noexcept {
  seeks(fd, offset, whence);
  const StagedUse use(fd);
  return was_sought(fd, REAL(lseek64)(fd, offset, whence));
}
SLUICE_EXPORT int fseek(FILE* file, long offset, int whence) {
  fd_sought(fileno_unlocked(file));
  return REAL(fseek)(file, offset, whence);
}
SLUICE_EXPORT int fseeko(FILE* file, off_t offset, int whence) {
  fd_sought(fileno_unlocked(file));
  return REAL(fseeko)(file, offset, whence);
}
SLUICE_EXPORT int fseeko64(FILE* file, off64_t offset, int whence) {
  fd_sought(fileno_unlocked(file));
  return REAL(fseeko64)(file, offset, whence);
}
SLUICE_EXPORT void rewind(FILE* file) {
  fd_sought(fileno_unlocked(file));
  REAL(rewind)(file);
}
SLUICE_EXPORT int fsetpos(FILE* file, const fpos_t* position) {
  fd_sought(fileno_unlocked(file));
  return REAL(fsetpos)(file, position);
}
SLUICE_EXPORT int fsetpos64(FILE* file, const fpos64_t* position) {
  fd_sought(fileno_unlocked(file));
  return REAL(fsetpos64)(file, position);
}
// Passed through: the call itself prefetches the range.
SLUICE_EXPORT ssize_t readahead(int fd, off64_t offset, size_t size) noexcept {
  return REAL(readahead)(fd, offset, size);
}

namespace {
// After a transfer out of `fd`, at its own offset or at *offset, which the call has advanced.
ssize_t was_sent(const ReadWatch& watch, int fd, ssize_t bytes, const off_t* offset) {
  return offset == nullptr ? was_read(watch, fd, bytes)
                           : was_read_at(watch, fd, bytes, bytes > 0 ? *offset - bytes : 0);
}
}  // namespace

SLUICE_EXPORT ssize_t sendfile(int to, int from, off_t* offset, size_t size) noexcept {
  const StagedUse use(from);
  const ReadWatch watch(from);
  return was_sent(watch, from, REAL(sendfile)(to, from, offset, size), offset);
}
SLUICE_EXPORT ssize_t sendfile64(int to, int from, off64_t* offset, size_t size) noexcept {
  const StagedUse use(from);
  const ReadWatch watch(from);
  return was_sent(watch, from, REAL(sendfile64)(to, from, offset, size), offset);
}
SLUICE_EXPORT ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset,
                             size_t size, unsigned flags) {
  const StagedUse use(from);
  const ReadWatch watch(from);
  return was_sent(watch, from, REAL(splice)(from, from_offset, to, to_offset, size, flags),
                  from_offset);
}
SLUICE_EXPORT ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset,
                                      size_t size, unsigned flags) {
  const ReadWatch watch(from);
  use_original(from);  // the call fails between file systems of two kinds
  ssize_t bytes = REAL(copy_file_range)(from, from_offset, to, to_offset, size, flags);
  if (bytes < 0 && errno == EXDEV)
    bytes = copy_range_of_staged(from, from_offset, to, to_offset, size);
  return was_sent(watch, from, bytes, from_offset);
}
