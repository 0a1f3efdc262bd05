// How the memory is divided between H-cache and L-cache (iCache, section III-A). Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::policy {

inline constexpr double kFirstHShare = 0.9;            // section V-A: initially 9:1
inline constexpr uint64_t kPackageBytes = 1ULL << 20;  // a package is at least as large

// Size of the H-cache = size of the cache x frequency of H / (frequency of H + frequency of L); the
// L-cache has the rest, and never less than a package, unless that is more than half of all.
// Frequencies are accesses of the epoch that ended, so that the split does not vary within one.
// That is the paper's rule. But where substitutions are bounded the L-cache may hold samples that
// are never delivered; while the bound is reached, its part is halved with each epoch: substitutes
// can as well be read package by package.
class CacheSplit {
 public:
  explicit CacheSplit(uint64_t capacity, uint64_t package_bytes = kPackageBytes)
      : capacity_(capacity), package_bytes_(package_bytes) {}

  void access(bool is_h) { ++(is_h ? h_ : l_); }
  // `bounded`: the epoch that ended substituted as many requests as it may.
  void begin_epoch(bool bounded = false) {
    l_part_ = bounded ? l_part_ / 2 : std::min(l_part_ * 2, 1.0);
    if (h_ + l_ == 0) return;
    share_ = static_cast<double>(h_) / static_cast<double>(h_ + l_);
    h_ = l_ = 0;
  }
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  void set_package_bytes(uint64_t bytes) { package_bytes_ = bytes; }
  // Upper limit of the L-cache, whatever the rule gives it; room for one package remains.
  void set_most_l(uint64_t bytes) { most_l_ = bytes; }

  uint64_t capacity() const { return capacity_; }
  uint64_t h_bytes() const {
    const double h_share = 1 - (1 - share_) * l_part_;
    const auto wanted = static_cast<uint64_t>(h_share * static_cast<double>(capacity_));
    const uint64_t least = capacity_ - std::min(most_l_, capacity_);
    return std::min(std::max(wanted, least), capacity_ - std::min(package_bytes_, capacity_ / 2));
  }
  uint64_t l_bytes() const { return capacity_ - h_bytes(); }

 private:
  uint64_t capacity_;
  uint64_t most_l_ = UINT64_MAX;
  uint64_t package_bytes_;
  double share_ = kFirstHShare;
  double l_part_ = 1;       // share of what the rule gives the L-cache
  uint64_t h_ = 0, l_ = 0;  // accesses of the present epoch
};

}  // namespace sluice::policy
