#include "policy/importance/chunk_packages.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::policy {
namespace {

// Samples of packages that are compared for each load: the best of some random packages is nearly
// as useful as the best of all, and takes a time that does not grow with the dataset.
constexpr size_t kCompared = 512;
constexpr uint32_t kLeastCompared = 4;  // packages, whatever they hold
// A package costs a request for so many bytes. It must save more requests than it costs, and of
// what it takes of the link this part, at least, must be of use.
constexpr uint64_t kRequestBytes = 1 << 20, kLeastSaved = 2, kLeastUseful = 8;

struct Worth {
  uint64_t samples = 0, bytes = 0;  // useful
  uint64_t all = 0;                 // bytes

  bool too_little() const {
    const uint64_t requests = (all + kRequestBytes - 1) / kRequestBytes;
    return samples < kLeastSaved * requests || bytes * kLeastUseful < all;
  }
};

}  // namespace

ChunkPackages::ChunkPackages(std::shared_ptr<const ChunkMap> map, std::vector<uint32_t> bytes,
                             uint64_t seed)
    : map_(std::move(map)),
      bytes_(std::move(bytes)),
      random_(mixed(seed)),
      waiting_(map_->chunks()),
      first_(map_->chunks(), kNoSample) {}

void ChunkPackages::begin_epoch() {
  left_.resize(map_->chunks());
  std::iota(left_.begin(), left_.end(), 0);
}

uint64_t ChunkPackages::package_bytes() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0}) / std::max(map_->chunks(), 1U);
}

uint32_t ChunkPackages::next_to_load(const std::function<bool(SampleId)>& useful) {
  uint64_t most = 0;
  size_t best = 0, seen = 0;
  for (uint32_t compared = 0;
       (seen < kCompared || compared < kLeastCompared) && compared < left_.size();) {
    // Those that were compared are at the front.
    const uint32_t other = compared + random_.below(static_cast<uint32_t>(left_.size()) - compared);
    std::swap(left_[compared], left_[other]);
    Worth worth;
    for (const SampleId sample : map_->members(left_[compared])) {
      worth.all += bytes_[sample];
      if (!useful(sample)) continue;
      ++worth.samples;
      worth.bytes += bytes_[sample];
    }
    seen += map_->members(left_[compared]).size();
    if (worth.too_little()) {  // nor will it have more later in this epoch
      std::swap(left_[compared], left_.back());
      left_.pop_back();
      continue;
    }
    if (worth.bytes > most) {
      most = worth.bytes;
      best = compared;
    }
    ++compared;
  }
  if (most == 0) return kNoChunk;
  std::swap(left_[best], left_.back());
  const uint32_t package = left_.back();
  left_.pop_back();
  return package;
}

void ChunkPackages::loaded(uint32_t package, std::span<const Packed> samples) {
  std::vector<SampleId>& waiting = waiting_[package];
  for (const Packed& packed : samples) {
    if (std::ranges::find(waiting, packed.sample) == waiting.end()) {
      waiting.push_back(packed.sample);
    }
  }
}

std::vector<SampleId> ChunkPackages::read_for(SampleId delivered) {
  SampleId& first = first_[map_->chunk_of(delivered)];
  if (!waits(delivered)) {
    if (first == delivered) first = kNoSample;  // what came with it has come
    return {};
  }
  std::vector<SampleId>& waiting = waiting_[map_->chunk_of(delivered)];
  std::iter_swap(waiting.begin(), std::ranges::find(waiting, delivered));
  first = delivered;
  return std::exchange(waiting, {});
}

void ChunkPackages::drop(SampleId sample) { std::erase(waiting_[map_->chunk_of(sample)], sample); }

bool ChunkPackages::waits(SampleId sample) const {
  const std::vector<SampleId>& waiting = waiting_[map_->chunk_of(sample)];
  return std::ranges::find(waiting, sample) != waiting.end();
}

}  // namespace sluice::policy
