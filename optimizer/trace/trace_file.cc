#include "optimizer/trace/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace sluice::optimizer {
namespace {

using protocol::TraceHeader;
using protocol::TraceRecord;

constexpr size_t kRecordsAtOnce = 32 << 10;

// Returns the bytes written: fewer than `size` after an error, which is in errno.
size_t write_fully(int fd, const void* bytes, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t wrote = write(fd, static_cast<const char*>(bytes) + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  return done;
}

ssize_t read_fully(int fd, void* bytes, size_t size, off_t offset) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        pread(fd, static_cast<char*>(bytes) + done, size - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

std::string failed(const char* what) { return std::string(what) + ": " + strerror(errno); }

}  // namespace

TraceIdentity identify_trace(int fd) {
  TraceIdentity identity;
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || (flags & O_APPEND) == 0 ||
      (flags & O_PATH) != 0) {
    identity.problem = "a trace must be open for reading and for writing at its end";
    return identity;
  }
  struct stat about {};
  if (fstat(fd, &about) != 0) {
    identity.problem = failed("the trace");
  } else if (!S_ISREG(about.st_mode)) {
    identity.problem = "a trace must be a regular file";
  }
  identity.device = about.st_dev;
  identity.inode = about.st_ino;
  return identity;
}

PreparedTrace prepare_trace(int fd) {
  PreparedTrace prepared;
  struct stat about {};
  if (fstat(fd, &about) != 0) {
    prepared.problem = failed("the trace");
    return prepared;
  }
  TraceHeader header{protocol::kTraceMagic, protocol::kTraceVersion, sizeof(TraceRecord), 0};
  if (about.st_size == 0) {
    if (write_fully(fd, &header, sizeof header) != sizeof header) {
      prepared.problem = failed("the trace cannot be written");
      if (ftruncate(fd, 0) != 0) prepared.problem += "; a part of its header is left";
    }
    return prepared;
  }
  TraceHeader found{};
  if (read_fully(fd, &found, sizeof found, 0) != sizeof found ||
      memcmp(&found, &header, sizeof header) != 0) {
    prepared.problem = "the file holds something else than a trace of this version";
    return prepared;
  }
  const auto size = static_cast<uint64_t>(about.st_size) - sizeof header;
  if (size % sizeof(TraceRecord) != 0 &&
      ftruncate(fd, static_cast<off_t>(about.st_size - size % sizeof(TraceRecord))) != 0) {
    prepared.problem = failed("its last record is cut short and stays so");
    return prepared;
  }
  std::vector<TraceRecord> records(kRecordsAtOnce);
  for (off_t at = sizeof header;;) {
    const ssize_t got = read_fully(fd, records.data(), records.size() * sizeof(TraceRecord), at);
    if (got < 0) {
      prepared.problem = failed("the trace cannot be read");
      return prepared;
    }
    const size_t count = static_cast<size_t>(got) / sizeof(TraceRecord);
    for (size_t i = 0; i < count; ++i) {
      prepared.jobs =
          std::max(prepared.jobs, records[i].job == UINT32_MAX ? UINT32_MAX : records[i].job + 1);
    }
    if (count < records.size()) return prepared;
    at += got;
  }
}

std::string append_records(int fd, std::span<const TraceRecord> records) {
  const size_t size = records.size_bytes();
  const size_t done = write_fully(fd, records.data(), size);
  if (done == size) return "";
  std::string problem = failed("the trace cannot be written");
  struct stat about {};
  const auto odd = static_cast<off_t>(done % sizeof(TraceRecord));
  if (odd != 0 && (fstat(fd, &about) != 0 || ftruncate(fd, about.st_size - odd) != 0)) {
    problem += "; its last record is cut short";
  }
  return problem;
}

}  // namespace sluice::optimizer
