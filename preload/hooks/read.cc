// Reading. No logic: call, report, preserve errno.
#include <type_traits>

#include "preload/base/real.h"
#include "preload/cells/renew.h"
#include "preload/cells/retry.h"
#include "preload/files/fds.h"
#include "preload/files/read_watch.h"
#include "preload/samples/sample_fds.h"
#include "preload/stage/copy_range.h"
#include "preload/stage/original.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

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
// A call that reads at the descriptor's own offset, and one that reads at `offset`.
template <typename Call>
ssize_t reading(int fd, size_t wanted, Call call) {
  const StagedUse use(fd);
  ReadWatch watch(fd);
  watch.large_read(fd, -1, wanted);
  return was_read(watch, fd, call(), wanted);
}
template <typename Call>
ssize_t reading_at(int fd, off_t offset, size_t wanted, Call call) {
  ReadWatch watch(fd);
  if (offset >= 0) watch.large_read(fd, offset, wanted);
  return was_read_at(watch, fd, call(), offset, wanted);
}
// After a transfer out of `fd`, at its own offset or at *offset, which the call has advanced.
ssize_t was_sent(const ReadWatch& watch, int fd, ssize_t bytes, const off_t* offset) {
  return offset == nullptr ? was_read(watch, fd, bytes)
                           : was_read_at(watch, fd, bytes, bytes > 0 ? *offset - bytes : 0);
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
  ReadWatch watch(fd);
  watch.large_read(fd, -1, wanted - before);
  const size_t got = call();
  const auto bytes = static_cast<ssize_t>(got * size + buffered(file) - before);
  if (bytes > 0) {
    was_read(watch, fd, bytes);
  } else {
    watch.done(fd, 0, watch.end_ns());
  }
  return got;
}
// SEEK_DATA and SEEK_HOLE need the original, and so do very large offsets, since the largest offset
// depends on the file system.
template <typename Call>
off_t seeking(int fd, off_t offset, int whence, Call call) {
  constexpr off_t kFar = 1LL << 40;
  if (whence > SEEK_END || offset > kFar) use_original(fd);
  const StagedUse use(fd);
  const bool asks = whence == SEEK_CUR && offset == 0;
  const off_t before = asks ? -1 : fd_offset(fd);
  const off_t result = call();
  if (result >= 0 && !asks) fd_sought(fd, before, result);
  return result;
}

}  // namespace

// One line per call: name, parameters, arguments. `fd`, `size`, `offset`, `parts`, `file` and
// `items` are what the call calls so.
#define READ(name, parameters, arguments)                           \
  SLUICE_EXPORT ssize_t name parameters {                           \
    return reading(fd, size, [&] { return REAL(name) arguments; }); \
  }
READ(read, (int fd, void* buffer, size_t size), (fd, buffer, size))
READ(__read_chk, (int fd, void* buffer, size_t size, size_t limit), (fd, buffer, size, limit))

#define READ_AT(name, parameters, arguments)                                   \
  SLUICE_EXPORT ssize_t name parameters {                                      \
    return reading_at(fd, offset, size, [&] { return REAL(name) arguments; }); \
  }
READ_AT(pread, (int fd, void* b, size_t size, off_t offset), (fd, b, size, offset))
READ_AT(pread64, (int fd, void* b, size_t size, off64_t offset), (fd, b, size, offset))
READ_AT(__pread_chk, (int fd, void* b, size_t size, off_t offset, size_t m),
        (fd, b, size, offset, m))
READ_AT(__pread64_chk, (int fd, void* b, size_t size, off64_t offset, size_t m),
        (fd, b, size, offset, m))

// Into several buffers. Offset -1 is the descriptor's own, for the calls that have flags.
SLUICE_EXPORT ssize_t readv(int fd, const struct iovec* parts, int count) {
  return reading(fd, 0,
                 [&] { return retrying([&] { return REAL(readv)(fd, parts, count); }, {parts}); });
}
#define READ_PARTS(name, own, parameters, arguments)                                           \
  SLUICE_EXPORT ssize_t name parameters {                                                      \
    const auto call = [&] { return retrying([&] { return REAL(name) arguments; }, {parts}); }; \
    return own ? reading(fd, 0, call) : reading_at(fd, offset, 0, call);                       \
  }
READ_PARTS(preadv, false, (int fd, const struct iovec* parts, int n, off_t offset),
           (fd, parts, n, offset))
READ_PARTS(preadv64, false, (int fd, const struct iovec* parts, int n, off64_t offset),
           (fd, parts, n, offset))
READ_PARTS(preadv2, offset == -1, (int fd, const struct iovec* parts, int n, off_t offset, int f),
           (fd, parts, n, offset, f))
READ_PARTS(preadv64v2, offset == -1,
           (int fd, const struct iovec* parts, int n, off64_t offset, int f),
           (fd, parts, n, offset, f))

#define READ_STREAM(name, parameters, arguments)                                 \
  SLUICE_EXPORT size_t name parameters {                                         \
    return read_stream(file, size, items, [&] { return REAL(name) arguments; }); \
  }
READ_STREAM(fread, (void* b, size_t size, size_t items, FILE* file), (b, size, items, file))
READ_STREAM(fread_unlocked, (void* b, size_t size, size_t items, FILE* file),
            (b, size, items, file))
READ_STREAM(__fread_chk, (void* b, size_t m, size_t size, size_t items, FILE* file),
            (b, m, size, items, file))
READ_STREAM(__fread_unlocked_chk, (void* b, size_t m, size_t size, size_t items, FILE* file),
            (b, m, size, items, file))

SLUICE_EXPORT off_t lseek(int fd, off_t offset, int whence) noexcept {
  return seeking(fd, offset, whence, [&] { return REAL(lseek)(fd, offset, whence); });
}
SLUICE_EXPORT off64_t lseek64(int fd, off64_t offset, int whence) noexcept {
  return seeking(fd, offset, whence, [&] { return REAL(lseek64)(fd, offset, whence); });
}
// Within the buffer such a call moves nothing.
template <typename Call>
auto seeking_stream(FILE* file, Call call) {
  const int fd = fileno_unlocked(file);
  const off_t before = fd_offset(fd);
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    fd_sought(fd, before, fd_offset(fd));
  } else {
    const auto result = call();
    fd_sought(fd, before, fd_offset(fd));
    return result;
  }
}
#define SEEK_STREAM(result, name, parameters, arguments)               \
  SLUICE_EXPORT result name parameters {                               \
    return seeking_stream(file, [&] { return REAL(name) arguments; }); \
  }
SEEK_STREAM(int, fseek, (FILE * file, long offset, int whence), (file, offset, whence))
SEEK_STREAM(int, fseeko, (FILE * file, off_t offset, int whence), (file, offset, whence))
SEEK_STREAM(int, fseeko64, (FILE * file, off64_t offset, int whence), (file, offset, whence))
SEEK_STREAM(void, rewind, (FILE * file), (file))
SEEK_STREAM(int, fsetpos, (FILE * file, const fpos_t* position), (file, position))
SEEK_STREAM(int, fsetpos64, (FILE * file, const fpos64_t* position), (file, position))

// Passed through: the call itself prefetches the range.
SLUICE_EXPORT ssize_t readahead(int fd, off64_t offset, size_t size) noexcept {
  return REAL(readahead)(fd, offset, size);
}

#define SEND(name, parameters, arguments)                       \
  SLUICE_EXPORT ssize_t name parameters {                       \
    const StagedUse use(from);                                  \
    const ReadWatch watch(from);                                \
    return was_sent(watch, from, REAL(name) arguments, offset); \
  }
SEND(sendfile, (int to, int from, off_t* offset, size_t size) noexcept, (to, from, offset, size))
SEND(sendfile64, (int to, int from, off64_t* offset, size_t size) noexcept,
     (to, from, offset, size))
SEND(splice, (int from, off64_t* offset, int to, off64_t* at, size_t size, unsigned flags),
     (from, offset, to, at, size, flags))

SLUICE_EXPORT ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset,
                                      size_t size, unsigned flags) {
  const ReadWatch watch(from);
  use_original(from);  // the call fails between file systems of two kinds
  ssize_t bytes = REAL(copy_file_range)(from, from_offset, to, to_offset, size, flags);
  if (bytes < 0 && errno == EXDEV)
    bytes = copy_range_of_staged(from, from_offset, to, to_offset, size);
  return was_sent(watch, from, bytes, from_offset);
}
