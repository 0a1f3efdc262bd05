#include "policy/samples/begun_samples.h"

#include <iterator>
#include <utility>

namespace sluice::policy {
namespace {

constexpr size_t kMaxPartsSeen = 1024;  // of one sample, before neighbours are joined

}  // namespace

void BegunSamples::begin(uint64_t reader, Begun begun) {
  const SessionId session = begun.session;
  const auto same_reader = begun_.find(reader);
  // Samples whose end events were lost have filled the table.
  if (same_reader == begun_.end() && begun_.size() >= kMaxReaders) {
    remove([](uint64_t, const Begun&) { return true; });
  } else if (same_reader != begun_.end() && same_reader->second.size() >= kMaxOpen) {
    remove([reader](uint64_t other, const Begun&) { return other == reader; });
  }
  if (sums_[session].samples >= kMaxOpenAll || sums_[session].parts >= kMaxPartsAll) {
    remove_session(session);
  }
  begun_[reader].push_back(std::move(begun));
  ++sums_[session].samples;
}

void BegunSamples::remove(const std::function<bool(uint64_t, const Begun&)>& which) {
  for (auto at = begun_.begin(); at != begun_.end();) {
    std::erase_if(at->second, [&](const Begun& begun) {
      if (!which(at->first, begun)) return false;
      Sums& sums = sums_[begun.session];
      --sums.samples;
      sums.parts -= begun.parts.size();
      if (on_lost) on_lost(begun);
      return true;
    });
    at = at->second.empty() ? begun_.erase(at) : std::next(at);
  }
  std::erase_if(sums_, [](const auto& entry) { return entry.second.samples == 0; });
}

void BegunSamples::remove_session(SessionId session) {
  remove([session](uint64_t, const Begun& begun) { return begun.session == session; });
}

void BegunSamples::remove_process(uint32_t pid) {
  remove([pid](uint64_t reader, const Begun&) { return reader >> 32 == pid; });
}

BegunSamples::Begun* BegunSamples::find(uint64_t reader, DatasetId dataset, uint64_t index) {
  const auto at = begun_.find(reader);
  if (at == begun_.end()) return nullptr;
  for (auto begun = at->second.rbegin(); begun != at->second.rend(); ++begun) {
    if (begun->dataset == dataset && begun->index == index) return &*begun;
  }
  return nullptr;
}

void BegunSamples::part(uint64_t reader, DatasetId dataset, uint64_t index, const Extent& extent) {
  Begun* begun = find(reader, dataset, index);
  if (begun == nullptr || begun->parts.size() >= kMaxPartsSeen) return;
  begun->parts.push_back(extent);
  ++sums_[begun->session].parts;
}

bool BegunSamples::end(uint64_t reader, DatasetId dataset, uint64_t index, Begun* ended) {
  Begun* begun = find(reader, dataset, index);
  if (begun == nullptr) return false;
  Sums& sums = sums_[begun->session];
  --sums.samples;
  sums.parts -= begun->parts.size();
  *ended = std::move(*begun);
  std::vector<Begun>& all = begun_.at(reader);
  all.erase(all.begin() + (begun - all.data()));
  if (all.empty()) begun_.erase(reader);
  return true;
}

bool BegunSamples::reads_at_random(uint64_t reader) const {
  const auto at = begun_.find(reader);
  return at != begun_.end() && at->second.back().random;
}

void BegunSamples::for_each(const std::function<void(const Begun&)>& visit) const {
  for (const auto& [reader, samples] : begun_) {
    for (const Begun& begun : samples) visit(begun);
  }
}

}  // namespace sluice::policy
