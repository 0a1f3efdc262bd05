#include "policy/chunks/pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::policy {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;

}  // namespace

ChunkPool::ChunkPool(const ChunkMap& map, std::span<const uint32_t> bytes, uint64_t capacity,
                     uint64_t seed)
    : map_(map),
      bytes_(bytes),
      capacity_(capacity),
      random_(mixed(seed)),
      held_(map.chunks()),
      in_memory_(map.samples()),
      delivered_(map.samples()),
      place_(map.samples(), kNowhere) {}

void ChunkPool::begin_epoch() {
  delivered_.assign(delivered_.size(), false);
  place_.assign(place_.size(), kNowhere);
  pool_.clear();
  order_.clear();
  next_ = 0;
  std::vector<uint32_t> residents;
  for (uint32_t chunk = 0; chunk < map_.chunks(); ++chunk) {
    bool whole = true;
    for (const SampleId sample : map_.members(chunk)) {
      if (in_memory_[sample]) {
        enter(sample);
      } else {
        whole = false;
      }
    }
    (whole ? residents : order_).push_back(chunk);
  }
  random_.shuffle(&order_);
  random_.shuffle(&residents);
  designate(std::move(residents));
}

void ChunkPool::lost(SampleId sample) {
  if (!in_memory_[sample]) return;
  in_memory_[sample] = false;
  used_ -= bytes_[sample];
}

// As many bytes as do not fit must leave memory in an epoch, and as many are read, which is the
// least possible. They are those of the chunks that come first: what was in memory when the epoch
// began, then what it reads. The rest, whole chunks as large as memory, is held for the next epoch.
void ChunkPool::designate(std::vector<uint32_t> residents) {
  residents.insert(residents.end(), order_.begin(), order_.end());
  uint64_t behind = std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
  for (const uint32_t chunk : residents) {
    held_[chunk] = behind <= capacity_;
    behind -= chunk_bytes(chunk);
  }
}

uint64_t ChunkPool::chunk_bytes(uint32_t chunk) const {
  uint64_t sum = 0;
  for (const SampleId sample : map_.members(chunk)) sum += bytes_[sample];
  return sum;
}

uint64_t ChunkPool::useful_bytes(uint32_t chunk) const {
  uint64_t sum = 0;
  for (const SampleId sample : map_.members(chunk)) {
    if (!in_memory_[sample] && !delivered_[sample]) sum += bytes_[sample];
  }
  return sum;
}

uint32_t ChunkPool::next_load() {
  if (next_ == order_.size()) return kNoChunk;
  const uint32_t chunk = order_[next_];
  const uint64_t bytes = useful_bytes(chunk);
  if (used_ + bytes > capacity_ && (!pool_.empty() || !flights_.empty())) return kNoChunk;
  ++next_;
  used_ += bytes;
  flights_.push_back({chunk, bytes});
  return chunk;
}

void ChunkPool::land(uint32_t chunk) {
  const auto at = std::find_if(flights_.begin(), flights_.end(),
                               [chunk](const Flight& flight) { return flight.chunk == chunk; });
  used_ -= at->bytes;
  flights_.erase(at);
}

void ChunkPool::loaded(uint32_t chunk, std::vector<SampleId>* entered) {
  land(chunk);
  for (const SampleId sample : map_.members(chunk)) {
    if (in_memory_[sample] || delivered_[sample]) continue;
    in_memory_[sample] = true;
    used_ += bytes_[sample];
    enter(sample);
    if (entered != nullptr) entered->push_back(sample);
  }
}

void ChunkPool::failed(uint32_t chunk) {
  land(chunk);
  for (const SampleId sample : map_.members(chunk)) {
    if (!in_memory_[sample] && !delivered_[sample]) enter(sample);
  }
}

ChunkPool::Answer ChunkPool::request(SampleId requested) {
  SampleId sample = requested;
  if (place_[requested] == kNowhere) {
    if (pool_.empty()) {
      const bool waits = next_ != order_.size() || !flights_.empty();
      return waits ? Answer{} : Answer{.sample = requested, .alone = true};
    }
    sample = pool_[random_.below(static_cast<uint32_t>(pool_.size()))];
  }
  const bool alone = !in_memory_[sample];
  deliver(sample);
  return {sample, alone, in_memory_[sample]};
}

void ChunkPool::enter(SampleId sample) {
  place_[sample] = static_cast<uint32_t>(pool_.size());
  pool_.push_back(sample);
}

void ChunkPool::deliver(SampleId sample) {
  const SampleId last = pool_.back();
  pool_[place_[sample]] = last;
  place_[last] = place_[sample];
  place_[sample] = kNowhere;
  pool_.pop_back();
  delivered_[sample] = true;
  if (!in_memory_[sample] || held_[map_.chunk_of(sample)]) return;
  in_memory_[sample] = false;
  used_ -= bytes_[sample];
}

uint64_t ChunkPool::footprint() const {
  return (place_.capacity() + pool_.capacity() + order_.capacity()) * sizeof(uint32_t) +
         (in_memory_.capacity() + delivered_.capacity()) / 8 + map_.samples() * 12ULL;
}

}  // namespace sluice::policy
