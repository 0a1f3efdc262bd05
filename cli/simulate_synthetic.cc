// A synthetic dataset and jobs that reshuffle it. The same seed gives the same numbers everywhere:
// only random functions whose results the C++ standard determines are used.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/simulate_workload.h"
#include "cli/text.h"
#include "policy/util/random.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

class Shuffled : public Workload {
 public:
  explicit Shuffled(const Synthetic& synthetic) : made_(synthetic), order_(synthetic.samples) {
    if (made_.sizes == Synthetic::Sizes::kFixed) {
      total_ = made_.bytes * made_.samples;
      return;
    }
    Random random(mixed(made_.seed));
    sizes_.resize(made_.samples);
    for (uint32_t& size : sizes_) {
      const double bytes = made_.median * std::exp(made_.sigma * random.normal());
      size = static_cast<uint32_t>(std::clamp(std::round(bytes), 1.0, 4294967295.0));
      total_ += size;
    }
  }

  uint32_t samples() const override { return made_.samples; }
  uint64_t dataset_bytes() const override { return total_; }
  unsigned jobs() const override { return made_.jobs; }
  unsigned rounds() const override { return made_.epochs; }

  std::span<const Access> round(unsigned index) override {
    Buffer& buffer = buffers_[index % 2];
    if (buffer.round != index) fill(index, &buffer);
    return buffer.accesses;
  }

  std::string description() const override {
    return fmt::format("{} samples, {}, {} epoch{}, {} job{}, reshuffled every epoch (seed {})",
                       made_.samples, format_bytes(static_cast<double>(total_)), made_.epochs,
                       made_.epochs == 1 ? "" : "s", made_.jobs, made_.jobs == 1 ? "" : "s",
                       made_.seed);
  }

 private:
  struct Buffer {
    uint64_t round = kNever;
    std::vector<Access> accesses;
  };

  uint64_t bytes(uint32_t sample) const { return sizes_.empty() ? made_.bytes : sizes_[sample]; }

  void fill(unsigned round, Buffer* buffer) {
    buffer->round = round;
    buffer->accesses.resize(uint64_t{made_.samples} * made_.jobs);
    for (unsigned job = 0; job < made_.jobs; ++job) {
      Random random(mixed(mixed(made_.seed + 1) ^ (uint64_t{round} << 32 | job)));
      std::iota(order_.begin(), order_.end(), 0);
      random.shuffle(&order_);
      for (uint64_t turn = 0; turn < made_.samples; ++turn) {
        const uint32_t sample = order_[turn];
        buffer->accesses[turn * made_.jobs + job] = {bytes(sample), sample,
                                                     static_cast<uint16_t>(job), turn == 0};
      }
    }
  }

  const Synthetic made_;
  uint64_t total_ = 0;
  std::vector<uint32_t> sizes_;  // empty: all samples have made_.bytes
  std::vector<uint32_t> order_;
  Buffer buffers_[2];
};

}  // namespace

std::unique_ptr<Workload> make_synthetic(const Synthetic& synthetic) {
  return std::make_unique<Shuffled>(synthetic);
}

}  // namespace sluice::cli
