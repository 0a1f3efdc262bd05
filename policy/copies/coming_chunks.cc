#include "policy/copies/coming_chunks.h"

#include <algorithm>
#include <utility>

namespace sluice::policy {

void ComingChunks::add(const Job& job, SampleFileId first, std::span<const SampleFileId> others,
                       bool package) {
  drop(first);
  with_.erase(first);
  chunks_[first] = {job, {{others.begin(), others.end()}, package}};
  for (const SampleFileId other : others) with_[other] = first;
}

void ComingChunks::unlink(SampleFileId first, const Chunk& chunk) {
  for (const SampleFileId other : chunk.others.files) {
    const auto at = with_.find(other);
    if (at != with_.end() && at->second == first) with_.erase(at);
  }
}

void ComingChunks::drop(SampleFileId first) {
  const auto known = chunks_.extract(first);
  if (!known.empty()) unlink(first, known.mapped());
}

void ComingChunks::drop(const Job& job, SampleFileId file) {
  const auto first = chunks_.find(file);
  if (first != chunks_.end() && first->second.job == job) drop(file);
  const auto with = with_.find(file);
  if (with != with_.end() && chunks_.at(with->second).job == job) with_.erase(with);
}

template <typename Test>
void ComingChunks::drop_if(Test test) {
  std::erase_if(chunks_, [this, test](const auto& entry) {
    if (!test(entry.second.job)) return false;
    unlink(entry.first, entry.second);
    return true;
  });
}

void ComingChunks::begin_epoch(const Job& job) {
  drop_if([&job](const Job& one) { return one == job; });
}

void ComingChunks::drop_session(SessionId session) {
  drop_if([session](const Job& one) { return one.session == session; });
}

void ComingChunks::drop_dataset(DatasetId dataset) {
  drop_if([dataset](const Job& one) { return one.dataset == dataset; });
}

StagePlan::Companions ComingChunks::take(SampleFileId file) {
  auto known = chunks_.extract(file);
  if (known.empty()) {
    const auto with = with_.find(file);
    if (with == with_.end()) return {};
    known = chunks_.extract(with->second);
  }
  const SampleFileId first = known.key();
  Chunk chunk = std::move(known.mapped());
  std::erase_if(chunk.others.files, [this, first](SampleFileId other) {
    const auto with = with_.find(other);
    return with == with_.end() || with->second != first;  // it came alone, or comes with another
  });
  unlink(first, chunk);
  if (first != file) std::ranges::replace(chunk.others.files, file, first);
  return std::move(chunk.others);
}

}  // namespace sluice::policy
