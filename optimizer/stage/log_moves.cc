#include "optimizer/stage/log_moves.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::optimizer {

using policy::LogIndex;
using policy::LogPlan;
using policy::LogRange;
namespace {

// All of the file. Empty: it is shorter, or cannot be read.
std::vector<std::byte> content(int fd, uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = pread(fd, bytes.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    done += static_cast<size_t>(got);
  }
  return bytes;
}

// Empty: they are not to be had.
std::vector<std::byte> logged(const LogFiles& files, const LogSource::Logged& from) {
  int error = 0;
  const AlignedBuffer read =
      files.read(from.entry.log, policy::whole_blocks(from.place), &error, LogFiles::From::kCache);
  if (read.size() == 0) return {};
  const std::span<const std::byte> bytes =
      read.span().subspan(from.place.offset % LogIndex::kBlock, from.place.length);
  if (LogFiles::checksum(bytes) != from.entry.checksum) return {};
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> content(const LogFiles& files, const LogSource& source) {
  return source.logged ? logged(files, *source.logged) : content(source.copy->get(), source.bytes);
}

}  // namespace

LogMoved carry_out(LogFiles* files, uint32_t current, const LogPlan::Moves& moves,
                   const LogSource& source) {
  LogMoved moved;
  std::vector<std::byte> bytes;  // read before their place in the log is released
  if (!moves.writes.empty()) bytes = content(*files, source);
  // Where blocks cannot be released, the log takes its room until it is cleared.
  for (const LogRange& range : moves.release) files->release(current, range);
  for (const LogPlan::Write& write : moves.writes) {
    if (bytes.empty()) break;
    moved.error = files->write(moves.to_current ? current : current ^ 1, write.offset, bytes);
    moved.checksum = LogFiles::checksum(bytes);
  }
  if (source.copy != nullptr) source.copy->reset();
  return moved;
}

}  // namespace sluice::optimizer
