#include <algorithm>
#include <cmath>

#include "lmdb_tools/image.h"

namespace sluice::lmdb {
namespace {

// Weights are fractions of 2^kBits; 255 times their sum fits an int32_t with room to spare.
constexpr int kBits = 20;
constexpr int32_t kHalf = 1 << (kBits - 1);

// For each target pixel of one axis, which source pixels it is made of and how much of each.
struct Axis {
  struct Target {
    uint32_t first;
    uint32_t count;
  };
  std::vector<Target> targets;
  std::vector<int32_t> weights;  // `stride` for each target
  uint32_t stride;
};

Axis make_axis(uint32_t from, uint32_t to) {
  const double scale = static_cast<double>(from) / to;
  const double reach = std::max(scale, 1.0);  // half the base of the triangle, in source pixels
  Axis axis;
  axis.stride = static_cast<uint32_t>(std::ceil(reach)) * 2 + 1;
  axis.targets.resize(to);
  axis.weights.resize(static_cast<size_t>(to) * axis.stride);
  std::vector<double> exact;
  for (uint32_t i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const auto first = static_cast<uint32_t>(std::max(std::floor(centre - reach), 0.0));
    const auto last = static_cast<uint32_t>(
        std::min(std::ceil(centre + reach), static_cast<double>(from)));  // one past the last
    exact.clear();
    double sum = 0;
    for (uint32_t s = first; s < last && exact.size() < axis.stride; ++s) {
      exact.push_back(std::max(0.0, 1.0 - std::abs(s + 0.5 - centre) / reach));
      sum += exact.back();
    }
    int32_t* weights = &axis.weights[static_cast<size_t>(i) * axis.stride];
    int32_t left = 1 << kBits;
    size_t largest = 0;
    for (size_t k = 0; k < exact.size(); ++k) {
      weights[k] = static_cast<int32_t>(std::lround(exact[k] / sum * (1 << kBits)));
      left -= weights[k];
      if (weights[k] > weights[largest]) largest = k;
    }
    weights[largest] += left;  // the sum is exactly one: a uniform area does not change
    axis.targets[i] = {first, static_cast<uint32_t>(exact.size())};
  }
  return axis;
}

uint8_t rounded(int32_t sum) { return static_cast<uint8_t>((sum + kHalf) >> kBits); }

template <uint32_t kChannels>
void scale_rows(const Image& image, const Axis& axis, Image* out) {
  const size_t in_stride = static_cast<size_t>(image.width) * kChannels;
  uint8_t* to = out->pixels.data();
  for (uint32_t y = 0; y < image.height; ++y) {
    const uint8_t* row = image.pixels.data() + y * in_stride;
    for (uint32_t x = 0; x < out->width; ++x) {
      const auto [first, count] = axis.targets[x];
      const int32_t* weights = &axis.weights[static_cast<size_t>(x) * axis.stride];
      const uint8_t* from = row + static_cast<size_t>(first) * kChannels;
      int32_t sums[kChannels] = {};
      for (uint32_t k = 0; k < count; ++k) {
        for (uint32_t c = 0; c < kChannels; ++c) sums[c] += weights[k] * *from++;
      }
      for (const int32_t sum : sums) *to++ = rounded(sum);
    }
  }
}

// Line by line, so that the inner loop runs over neighbours and is vectorised.
void scale_columns(const Image& image, const Axis& axis, Image* out) {
  const size_t stride = static_cast<size_t>(image.width) * image.channels;
  std::vector<int32_t> sums(stride);
  uint8_t* to = out->pixels.data();
  for (uint32_t y = 0; y < out->height; ++y, to += stride) {
    const auto [first, count] = axis.targets[y];
    const int32_t* weights = &axis.weights[static_cast<size_t>(y) * axis.stride];
    std::fill(sums.begin(), sums.end(), 0);
    for (uint32_t k = 0; k < count; ++k) {
      const uint8_t* from = image.pixels.data() + (first + k) * stride;
      for (size_t i = 0; i < stride; ++i) sums[i] += weights[k] * from[i];
    }
    for (size_t i = 0; i < stride; ++i) to[i] = rounded(sums[i]);
  }
}

}  // namespace

Image resize(const Image& image, uint32_t width, uint32_t height) {
  if (image.width == width && image.height == height) return image;
  Image wide{width, image.height, image.channels, {}};
  wide.pixels.resize(static_cast<size_t>(width) * image.height * image.channels);
  const Axis across = make_axis(image.width, width);
  if (image.channels == 1) {
    scale_rows<1>(image, across, &wide);
  } else {
    scale_rows<3>(image, across, &wide);
  }
  Image out{width, height, image.channels, {}};
  out.pixels.resize(static_cast<size_t>(width) * height * image.channels);
  scale_columns(wide, make_axis(image.height, height), &out);
  return out;
}

}  // namespace sluice::lmdb
