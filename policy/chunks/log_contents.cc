#include "policy/chunks/log_contents.h"

#include <algorithm>

namespace sluice::policy {

void LogContents::reset(size_t samples) {
  for (uint32_t log = 0; log < logs_.size(); ++log) {
    logs_[log].resize(samples);
    clear(log);
  }
}

void LogContents::clear(uint32_t log) {
  std::ranges::fill(logs_[log], Written{});
  std::erase_if(writes_, [log](const auto& write) { return write.first >> 32 == log; });
  editions_[log] = ++last_;
}

LogContents::Write LogContents::begin(SampleId sample, uint32_t log, uint64_t version) {
  logs_[log][sample] = {};
  writes_[key(sample, log)] = ++last_;
  return {sample, log, version, last_};
}

bool LogContents::end(const Write& write, uint64_t checksum) {
  const auto begun = writes_.find(key(write.sample, write.log));
  if (begun == writes_.end() || begun->second != write.number) return false;
  writes_.erase(begun);
  logs_[write.log][write.sample] = {checksum, write.version};
  return true;
}

void LogContents::drop(SampleId sample, uint32_t log) {
  logs_[log][sample] = {};
  writes_.erase(key(sample, log));
}

std::optional<LogContents::Entry> LogContents::find(SampleId sample, uint32_t log) const {
  const Written& written = logs_[log][sample];
  if (written.checksum == 0) return std::nullopt;
  return Entry{log, editions_[log], written.checksum, written.version};
}

bool LogContents::stands(SampleId sample, const Entry& entry) const {
  return sample < logs_[entry.log].size() && find(sample, entry.log) == entry;
}

}  // namespace sluice::policy
