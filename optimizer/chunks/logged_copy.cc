#include "optimizer/chunks/logged_copy.h"

#include <cerrno>
#include <utility>

#include "optimizer/io/transfer.h"

namespace sluice::optimizer {

using policy::LogRange;

LogRead::LogRead(std::shared_ptr<const LogFiles> files, uint32_t log, std::vector<LogRange> ranges)
    : files_(std::move(files)), log_(log), ranges_(std::move(ranges)) {}

void LogRead::prepare() {
  std::call_once(once_, [this] {
    for (const LogRange& range : ranges_) {
      if (canceled_) break;
      int error = 0;
      buffers_.push_back(files_->read(log_, range, &error));
    }
  });
}

std::span<const std::byte> LogRead::bytes(LogRange place) {
  prepare();
  for (size_t at = 0; at < buffers_.size(); ++at) {
    const LogRange& range = ranges_[at];
    if (place.offset < range.offset || buffers_[at].size() == 0) continue;
    if (place.offset + place.length > range.offset + buffers_[at].size()) continue;
    return buffers_[at].span().subspan(place.offset - range.offset, place.length);
  }
  return {};
}

int copy_logged(const LoggedCopy& logged, int to) {
  const std::span<const std::byte> bytes = logged.read->bytes(logged.place);
  if (bytes.empty()) return EIO;
  if (LogFiles::checksum(bytes) != logged.entry.checksum) return EBADMSG;
  return write_fully(to, bytes.data(), bytes.size());
}

}  // namespace sluice::optimizer
