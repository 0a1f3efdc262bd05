#include "optimizer/stage/log_moves.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "optimizer/chunks/aligned_buffer.h"
#include "optimizer/io/transfer.h"

namespace sluice::optimizer {

using policy::LogIndex;
using policy::LogPlan;
using policy::LogRange;
namespace {

// Bytes of a sample, in a buffer of theirs.
struct Content {
  AlignedBuffer buffer;
  std::span<const std::byte> bytes;  // empty: they are not to be had
};

// All of the file, if it is that long. A large buffer, since those are kept for the next sample.
Content content(int fd, uint64_t size) {
  Content all{AlignedBuffer(std::max<size_t>(size, AlignedBuffer::kLarge)), {}};
  if (all.buffer.size() >= size && read_fully(fd, all.buffer.data(), size, 0) == 0) {
    all.bytes = all.buffer.span().first(size);
  }
  return all;
}

Content logged(const LogFiles& files, const LogSource::Logged& from) {
  int error = 0;
  Content read{
      files.read(from.entry.log, policy::whole_blocks(from.place), &error, LogFiles::From::kCache),
      {}};
  if (read.buffer.size() == 0) return read;
  read.bytes = read.buffer.span().subspan(from.place.offset % LogIndex::kBlock, from.place.length);
  if (LogFiles::checksum(read.bytes) != from.entry.checksum) read.bytes = {};
  return read;
}

Content content(const LogFiles& files, const LogSource& source) {
  return source.logged ? logged(files, *source.logged) : content(source.copy->get(), source.bytes);
}

}  // namespace

LogMoved carry_out(LogFiles* files, uint32_t current, const LogPlan::Moves& moves,
                   const LogSource& source) {
  LogMoved moved;
  Content of;  // read before its place in the log is released
  if (!moves.writes.empty()) of = content(*files, source);
  // Where blocks cannot be released, the log takes its room until it is cleared.
  for (const LogRange& range : moves.release) files->release(current, range);
  for (const LogPlan::Write& write : moves.writes) {
    if (of.bytes.empty()) break;
    moved.error = files->write(moves.to_current ? current : current ^ 1, write.offset, of.bytes);
    moved.checksum = LogFiles::checksum(of.bytes);
  }
  if (source.copy != nullptr) source.copy->reset();
  return moved;
}

}  // namespace sluice::optimizer
