#include "optimizer/samples/sample_set.h"

#include <algorithm>

namespace sluice::optimizer {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

void merge_neighbours(std::vector<Extent>* parts) {
  std::vector<Extent> merged;
  for (const Extent& part : *parts) {
    if (!merged.empty() && merged.back().file == part.file) {
      Extent& last = merged.back();
      const uint64_t end = last.offset + last.length;
      if (part.offset >= last.offset && part.offset <= end) {
        const uint64_t longer = std::max(end, part.offset + part.length) - last.offset;
        if (longer <= UINT32_MAX) {
          last.length = static_cast<uint32_t>(longer);
          continue;
        }
      }
    }
    merged.push_back(part);
  }
  *parts = std::move(merged);
}

bool is_coarser(std::span<const Extent> seen, std::span<const Extent> known) {
  return std::equal(seen.begin(), seen.end(), known.begin(), known.end(),
                    [](const Extent& pages, const Extent& part) {
                      return pages.offset % kPage == 0 && contains(pages, part);
                    });
}

// Whether what is said of the sample replaces what is known of it.
bool SampleSet::overrides(uint64_t index, const std::vector<Extent>& parts, Source source) {
  const std::span<const Extent> before = this->parts(index);
  if (before.empty()) {
    news_ += (source == Source::kSeen && !parts.empty() ? 1 : 0);
    return true;
  }
  const Source known = sources_[index];
  if (source != Source::kSeen) {
    return source == Source::kTold && known != Source::kSeen;
  }
  const bool same = std::equal(before.begin(), before.end(), parts.begin(), parts.end());
  news_ += (!same || known == Source::kGuessed ? 1 : 0);
  return !same || known != Source::kTold;  // what the job says anyway need not be kept
}

void SampleSet::learn(uint64_t index, std::vector<Extent> parts, Source source) {
  if (index >= samples_) return;
  merge_neighbours(&parts);
  if (parts.size() > kMaxParts) parts.clear();
  if (!overrides(index, parts, source)) return;
  set(index, std::move(parts));
  if (index < sources_.size()) sources_[index] = source;
}

void SampleSet::set(uint64_t index, std::vector<Extent> parts) {
  if (index >= single_.size()) {
    if (parts.empty()) return;
    single_.resize(index + 1);
    sources_.resize(index + 1);
  }
  Extent& entry = single_[index];
  if (entry.file == kMany) many_.erase(index);
  known_ += (parts.empty() ? 0 : 1);
  known_ -= (entry.file == 0 ? 0 : 1);
  if (parts.size() <= 1) {
    entry = parts.empty() ? Extent{} : parts.front();
  } else {
    entry = {0, 0, kMany};
    many_[index] = std::move(parts);
  }
}

void SampleSet::refine(uint64_t index, std::vector<Extent> parts) {
  if (index >= single_.size() || single_[index].file == 0) return;
  set(index, std::move(parts));
  sources_[index] = Source::kGuessed;
}

void SampleSet::forget_guesses() {
  for (uint64_t index = 0; index < single_.size(); ++index) {
    if (single_[index].file != 0 && sources_[index] == Source::kGuessed) set(index, {});
  }
}

std::span<const Extent> SampleSet::parts(uint64_t index) const {
  if (index >= single_.size() || single_[index].file == 0) return {};
  if (single_[index].file != kMany) return {&single_[index], 1};
  return many_.at(index);
}

uint64_t SampleSet::bytes(uint64_t index) const {
  uint64_t sum = 0;
  for (const Extent& part : parts(index)) sum += part.length;
  return sum;
}

}  // namespace sluice::optimizer
