// Seeded random numbers that are the same everywhere: uses only what the C++ standard determines.
// Pure.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

namespace sluice {

// Separates the seeds of different streams, which must not be neighbours (the finalizer of
// splitmix64).
inline uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// In (0, 1), of bits that are uniform.
inline double unit_of(uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // Uniform in [0, end), with a negligible bias of 2^-32. REQUIRES: end > 0.
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(((engine_() >> 32) * end) >> 32); }
  // In (0, 1).
  double unit() { return unit_of(engine_()); }
  double normal() {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }
  // Every permutation is equally likely. At most 2^32 - 1 items.
  template <typename Item>
  void shuffle(std::vector<Item>* items) {
    // Draws places ahead of their use to prefetch them: with millions each is a cache miss.
    constexpr size_t kAhead = 16;
    std::array<uint32_t, kAhead> from{};
    size_t drawn = items->size();
    for (size_t left = items->size(); left > 1; --left) {
      for (; drawn > 1 && left - drawn < kAhead; --drawn) {
        const uint32_t place = below(static_cast<uint32_t>(drawn));
        from[drawn % kAhead] = place;
        __builtin_prefetch(&(*items)[place], 1);
      }
      std::swap((*items)[left - 1], (*items)[from[left % kAhead]]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sluice
