// How the memory is divided between H-cache and L-cache (iCache, section III-A). Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::optimizer {

inline constexpr double kFirstHShare = 0.9;            // section V-A: 9:1 to begin with
inline constexpr uint64_t kPackageBytes = 1ULL << 20;  // a package is at least as large

// Size of the H-cache = size of the cache x frequency of H / (frequency of H + frequency of L); the
// L-cache has the rest, and never less than a package, unless that is more than half of all.
// Frequencies are accesses of the epoch that ended: what is kept is not moved to and fro within
// one.
class CacheSplit {
 public:
  explicit CacheSplit(uint64_t capacity) : capacity_(capacity) {}

  void access(bool is_h) { ++(is_h ? h_ : l_); }
  void begin_epoch() {
    if (h_ + l_ == 0) return;
    share_ = static_cast<double>(h_) / static_cast<double>(h_ + l_);
    h_ = l_ = 0;
  }
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }

  uint64_t h_bytes() const {
    const auto wanted = static_cast<uint64_t>(share_ * static_cast<double>(capacity_));
    return std::min(wanted, capacity_ - std::min(kPackageBytes, capacity_ / 2));
  }
  uint64_t l_bytes() const { return capacity_ - h_bytes(); }

 private:
  uint64_t capacity_;
  double share_ = kFirstHShare;
  uint64_t h_ = 0, l_ = 0;  // accesses of the present epoch
};

}  // namespace sluice::optimizer
