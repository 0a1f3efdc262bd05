// An addressable heap of samples with the least (key, sample) on top: any sample can be removed and
// any key changed. Four children a node, keys beside the samples: a level costs one cache line. 4
// bytes for each sample number, and one entry for each sample in the heap. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

template <typename Key>
class SampleHeap {
 public:
  explicit SampleHeap(uint32_t samples) : places_(samples, kNowhere) {}

  void grow(uint32_t samples) { places_.resize(samples, kNowhere); }
  // Allocates for so many entries, so that adding them does not move them.
  void reserve(size_t entries) { entries_.reserve(entries); }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  bool contains(SampleId sample) const { return places_[sample] != kNowhere; }
  uint64_t footprint() const {
    return entries_.capacity() * sizeof(Entry) + places_.capacity() * sizeof(uint32_t);
  }

  // REQUIRES: the heap is not empty.
  SampleId top() const { return entries_[0].sample; }
  Key top_key() const { return entries_[0].key; }
  // REQUIRES: the sample is in the heap.
  Key key(SampleId sample) const { return entries_[places_[sample]].key; }

  // REQUIRES: the sample is not in the heap.
  void push(SampleId sample, Key key) {
    // Grows by a quarter, not twofold: the entries are most of a policy's memory.
    if (entries_.size() == entries_.capacity()) {
      entries_.reserve(entries_.size() + entries_.size() / 4 + 64);
    }
    entries_.push_back({key, sample});
    rise(entries_.size() - 1, {key, sample});
  }

  // A sample of the heap: each at one `place` in [0, size()).
  SampleId at(size_t place) const { return entries_[place].sample; }

  // Removes the sample whose removal costs least. REQUIRES: the heap is not empty.
  SampleId take_any() {
    const SampleId sample = entries_.back().sample;
    places_[sample] = kNowhere;
    entries_.pop_back();
    return sample;
  }

  // REQUIRES of both: the sample is in the heap.
  void remove(SampleId sample) {
    const size_t place = places_[sample];
    places_[sample] = kNowhere;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.sample != sample) settle(place, last);
  }
  void change(SampleId sample, Key key) { settle(places_[sample], {key, sample}); }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  static constexpr size_t kChildren = 4;

  struct Entry {
    Key key;
    SampleId sample;
    bool operator<(const Entry& other) const {
      return std::tie(key, sample) < std::tie(other.key, other.sample);
    }
  };

  void put(size_t place, const Entry& entry) {
    entries_[place] = entry;
    places_[entry.sample] = static_cast<uint32_t>(place);
  }

  void settle(size_t place, const Entry& entry) {
    if (place > 0 && entry < entries_[(place - 1) / kChildren]) {
      rise(place, entry);
    } else {
      sink(place, entry);
    }
  }

  void rise(size_t place, const Entry& entry) {
    while (place > 0) {
      const size_t parent = (place - 1) / kChildren;
      if (!(entry < entries_[parent])) break;
      put(place, entries_[parent]);
      place = parent;
    }
    put(place, entry);
  }

  void sink(size_t place, const Entry& entry) {
    for (;;) {
      const size_t first = place * kChildren + 1;
      if (first >= entries_.size()) break;
      const size_t end = std::min(first + kChildren, entries_.size());
      size_t least = first;
      for (size_t child = first + 1; child < end; ++child) {
        if (entries_[child] < entries_[least]) least = child;
      }
      if (!(entries_[least] < entry)) break;
      put(place, entries_[least]);
      place = least;
    }
    put(place, entry);
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> places_;  // by sample: its entry, or kNowhere
};

}  // namespace sluice::policy
