#include "policy/samples/sample_set.h"

#include <algorithm>
#include <bit>

#include "protocol/page.h"

namespace sluice::policy {
namespace {
// In addition to a block or a vector itself: its node in the map, its bucket, malloc's overhead.
constexpr uint64_t kEntryBytes = 48;

uint64_t bytes_of(const std::vector<Extent>& extents) {
  return extents.capacity() * sizeof(Extent);
}

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

// Whether `parts` from `source` replace what is known of the sample.
bool SampleSet::overrides(uint64_t index, const std::vector<Extent>& parts, Source source) {
  const std::span<const Extent> before = this->parts(index);
  if (before.empty()) {
    news_ += (source == Source::kSeen && !parts.empty() ? 1 : 0);
    return true;
  }
  const Source known = this->source(index);
  if (source != Source::kSeen) {
    return source == Source::kDeclared && known != Source::kSeen;
  }
  const bool same = std::equal(before.begin(), before.end(), parts.begin(), parts.end());
  news_ += (!same || known == Source::kGuessed ? 1 : 0);
  return !same || known != Source::kDeclared;  // what the job declares again need not be stored
}

void SampleSet::learn(uint64_t index, std::vector<Extent> parts, Source source) {
  if (index >= samples_) return;
  merge_neighbours(&parts);
  if (parts.size() > kMaxParts) parts.clear();
  if (!overrides(index, parts, source)) return;
  if (parts.empty()) {
    remove(index);
    return;
  }
  set(index, std::move(parts));
  set_source(index, source);
}

size_t SampleSet::Block::place(uint64_t bit) const {
  return static_cast<size_t>(std::popcount(known & (bit - 1)));
}

const Extent* SampleSet::find(uint64_t index) const {
  const auto at = blocks_.find(index / kBlockSamples);
  const uint64_t bit = uint64_t{1} << index % kBlockSamples;
  if (at == blocks_.end() || (at->second.known & bit) == 0) return nullptr;
  return &at->second.extents[at->second.place(bit)];
}

// REQUIRES: !parts.empty()
void SampleSet::set(uint64_t index, std::vector<Extent> parts) {
  const auto [at, fresh] = blocks_.try_emplace(index / kBlockSamples);
  Block& block = at->second;
  if (fresh) held_ += sizeof(Block) + kEntryBytes;
  const uint64_t bit = uint64_t{1} << index % kBlockSamples;
  const auto place = static_cast<ptrdiff_t>(block.place(bit));
  if ((block.known & bit) == 0) {
    held_ -= bytes_of(block.extents);
    block.extents.insert(block.extents.begin() + place, Extent{});
    held_ += bytes_of(block.extents);
    block.known |= bit;
    ++known_;
    reach_ = std::max(reach_, index + 1);
  }
  Extent& entry = block.extents[static_cast<size_t>(place)];
  if (entry.file == kMany && parts.size() == 1) {
    held_ -= bytes_of(many_.at(index)) + kEntryBytes;
    many_.erase(index);
  }
  if (parts.size() == 1) {
    entry = parts.front();
    return;
  }
  const auto [all, added] = many_.try_emplace(index);
  held_ += added ? kEntryBytes : 0;
  held_ -= bytes_of(all->second);
  all->second = std::move(parts);
  held_ += bytes_of(all->second);
  entry = {0, 0, kMany};
}

void SampleSet::remove(uint64_t index) {
  const auto at = blocks_.find(index / kBlockSamples);
  const uint64_t bit = uint64_t{1} << index % kBlockSamples;
  if (at == blocks_.end() || (at->second.known & bit) == 0) return;
  Block& block = at->second;
  const auto place = static_cast<ptrdiff_t>(block.place(bit));
  if (block.extents[static_cast<size_t>(place)].file == kMany) {
    held_ -= bytes_of(many_.at(index)) + kEntryBytes;
    many_.erase(index);
  }
  block.extents.erase(block.extents.begin() + place);
  block.known &= ~bit;
  --known_;
  if (block.known != 0) return;
  held_ -= sizeof(Block) + kEntryBytes + bytes_of(block.extents);
  blocks_.erase(at);
}

Source SampleSet::source(uint64_t index) const {
  const Block& block = blocks_.at(index / kBlockSamples);
  const uint64_t shift = index % kBlockSamples;
  return static_cast<Source>((block.source[0] >> shift & 1) | (block.source[1] >> shift & 1) << 1);
}

void SampleSet::set_source(uint64_t index, Source source) {
  Block& block = blocks_.at(index / kBlockSamples);
  const uint64_t shift = index % kBlockSamples;
  for (unsigned i = 0; i < 2; ++i) {
    const uint64_t value = static_cast<uint64_t>(source) >> i & 1;
    block.source[i] = (block.source[i] & ~(uint64_t{1} << shift)) | value << shift;
  }
}

void SampleSet::refine(uint64_t index, std::vector<Extent> parts) {
  if (find(index) == nullptr) return;
  if (parts.empty()) {
    remove(index);
    return;
  }
  set(index, std::move(parts));
  set_source(index, Source::kGuessed);
}

void SampleSet::drop(Source source) {
  std::vector<uint64_t> indices;
  for_each_known([&](uint64_t index) {
    if (this->source(index) == source) indices.push_back(index);
    return true;
  });
  for (const uint64_t index : indices) remove(index);
}

void SampleSet::clear() {
  blocks_ = {};
  many_ = {};
  known_ = news_ = reach_ = held_ = 0;
}

void SampleSet::for_each_known(const std::function<bool(uint64_t)>& visit) const {
  std::vector<uint64_t> numbers;
  numbers.reserve(blocks_.size());
  for (const auto& [number, block] : blocks_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) {
    for (uint64_t left = blocks_.at(number).known; left != 0; left &= left - 1) {
      const auto bit = static_cast<uint64_t>(std::countr_zero(left));
      if (!visit(number * kBlockSamples + bit)) return;
    }
  }
}

std::span<const Extent> SampleSet::parts(uint64_t index) const {
  const Extent* entry = find(index);
  if (entry == nullptr) return {};
  if (entry->file != kMany) return {entry, 1};
  return many_.at(index);
}

uint64_t SampleSet::bytes(uint64_t index) const {
  uint64_t sum = 0;
  for (const Extent& part : parts(index)) sum += part.length;
  return sum;
}

}  // namespace sluice::policy
