#include "policy/importance/packer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sluice::policy {
namespace {

// Draws for one package at most: enough for datasets of which one sample in 1,000 is useful.
constexpr unsigned kMostDraws = 100'000;

}  // namespace

Packer::Packer(const PackerSettings& settings, SizeOf bytes_of)
    : settings_(settings),
      bytes_of_(std::move(bytes_of)),
      random_(mixed(settings.seed)),
      is_missed_(settings.samples),
      packed_in_(settings.samples) {}

void Packer::missed(SampleId sample) {
  if (sample >= settings_.samples || is_missed_[sample]) return;
  is_missed_[sample] = true;
  missed_.push_back(sample);
  missed_bytes_ += bytes_of_(sample);
}

bool Packer::add(SampleId sample, const HList& list, Package* package) {
  const uint32_t bytes = bytes_of_(sample);
  if (bytes == 0 || list.contains(sample) || packed_in_[sample] == package->number) return false;
  packed_in_[sample] = package->number;
  package->samples.push_back({sample, bytes});
  package->bytes += bytes;
  return true;
}

void Packer::take_from(std::deque<SampleId>* queue, const HList& list, Package* package) {
  while (!queue->empty() && !is_full(*package)) {
    add(queue->front(), list, package);
    queue->pop_front();
  }
}

void Packer::draw(const HList& list, Package* package) {
  const bool from_all = bytes_ + 2 * settings_.package_bytes <= settings_.most_bytes;
  for (unsigned tries = 0; tries < kMostDraws && !is_full(*package); ++tries) {
    const SampleId sample = random_.below(settings_.samples);
    if (from_all || packed_in_[sample] != 0) add(sample, list, package);
  }
}

Package Packer::pack(const HList& list) {
  Package package{++made_, {}, 0};
  const size_t waiting = missed_.size();
  take_from(&missed_, list, &package);
  if (missed_.size() != waiting) {
    std::fill(is_missed_.begin(), is_missed_.end(), false);
    missed_bytes_ = 0;
    for (const SampleId sample : missed_) {
      is_missed_[sample] = true;
      missed_bytes_ += bytes_of_(sample);
    }
  }
  take_from(&discarded_, list, &package);
  if (settings_.samples != 0) draw(list, &package);
  if (package.samples.empty()) return package;
  bytes_ += package.bytes;
  packages_.emplace(package.number, package);
  return package;
}

uint64_t Packer::useful_bytes(const Package& package, const HList& list) const {
  uint64_t bytes = 0;
  for (const Packed& packed : package.samples) {
    if (packed_in_[packed.sample] == package.number && !list.contains(packed.sample)) {
      bytes += packed.bytes;
    }
  }
  return bytes;
}

std::vector<uint64_t> Packer::renew(const HList& list) {
  std::vector<std::pair<double, uint64_t>> by_use;  // useful share, number
  for (const auto& [number, package] : packages_) {
    by_use.emplace_back(
        static_cast<double>(useful_bytes(package, list)) / static_cast<double>(package.bytes),
        number);
  }
  std::sort(by_use.begin(), by_use.end());
  std::vector<uint64_t> discarded;
  for (const auto& [share, number] : by_use) {
    if (share >= 0.5 && bytes_ <= settings_.most_bytes) break;
    for (const Packed& packed : packages_.at(number).samples) {
      if (packed_in_[packed.sample] == number && !list.contains(packed.sample)) {
        discarded_.push_back(packed.sample);
      }
    }
    lose(number);
    discarded.push_back(number);
  }
  return discarded;
}

void Packer::lose(uint64_t number) {
  const auto at = packages_.find(number);
  if (at == packages_.end()) return;
  for (const Packed& packed : at->second.samples) {
    if (packed_in_[packed.sample] == number) packed_in_[packed.sample] = 0;
  }
  bytes_ -= at->second.bytes;
  packages_.erase(at);
}

const Package* Packer::next_to_load(const HList& list, const LCache& cache,
                                    const std::function<bool(SampleId)>& delivered) const {
  const Package* best = nullptr;
  uint64_t most = 0;
  for (const auto& [number, package] : packages_) {
    uint64_t bytes = 0;
    for (const Packed& packed : package.samples) {
      const SampleId sample = packed.sample;
      if (!list.contains(sample) && !cache.retained(sample) && !delivered(sample))
        bytes += packed.bytes;
    }
    if (bytes <= most) continue;
    most = bytes;
    best = &package;
  }
  return best;
}

}  // namespace sluice::policy
