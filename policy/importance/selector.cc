#include "policy/importance/selector.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "policy/importance/values.h"

namespace sluice::policy {
namespace {

// Selection by loss percentile: Jiang et al., "Accelerating deep learning by focusing on the
// biggest losers" (arXiv 1910.00762), reference [18] of iCache. A candidate is selected with the
// probability CDF(loss)^beta, the CDF being that of the losses of the last candidates, selected or
// not. That paper recomputes the loss of every candidate; here it is the one observed when the
// sample was last trained, since computing it would require a fetch. Candidates come in random
// order, so that the history is a sample of all of them.
class LossPercentile : public Selector {
 public:
  using Selector::Selector;

 protected:
  void choose(Random* random, std::span<const float> values, std::vector<bool>* chosen) override {
    order_.resize(values.size());
    std::iota(order_.begin(), order_.end(), 0U);
    random->shuffle(&order_);
    // The first candidates are compared with those that follow them.
    for (const uint32_t sample : order_) {
      if (recent_.size() >= settings().history) break;
      if (is_known(values[sample])) remember(values[sample]);
    }
    sort();
    for (size_t at = 0; at < order_.size(); ++at) {
      if (at + kAhead < order_.size()) __builtin_prefetch(&values[order_[at + kAhead]]);
      const uint32_t sample = order_[at];
      const float value = values[sample];
      if (!is_known(value)) {
        (*chosen)[sample] = true;
        continue;
      }
      // The percentile includes the candidate itself.
      const double percentile =
          static_cast<double>(not_above(value) + 1) / static_cast<double>(sorted_.size() + 1);
      const double chance =
          settings().beta == 1 ? percentile : std::pow(percentile, settings().beta);
      (*chosen)[sample] = random->unit() < chance;
      remember(value);
      if (++unsorted_ >= settings().history) sort();
    }
  }

 private:
  static constexpr size_t kAhead = 16;  // with millions of samples each value is a cache miss

  void remember(float value) {
    if (recent_.size() >= settings().history) {
      recent_[oldest_] = value;
      if (++oldest_ == recent_.size()) oldest_ = 0;
    } else {
      recent_.push_back(value);
    }
  }
  // std::upper_bound without a branch that the processor would have to predict: a selection spends
  // most of its time here.
  size_t not_above(float value) const {
    const float* at = sorted_.data();
    size_t left = sorted_.size();
    while (left > 1) {
      const size_t half = left / 2;
      at += half * static_cast<size_t>(at[half - 1] <= value);
      left -= half;
    }
    return static_cast<size_t>(at - sorted_.data()) + (left == 1 && *at <= value ? 1 : 0);
  }
  // Once per `history` candidates: sorting for each would take so long that a job would wait for
  // it.
  void sort() {
    sorted_ = recent_;
    std::sort(sorted_.begin(), sorted_.end());
    unsorted_ = 0;
  }

  std::vector<uint32_t> order_;
  std::vector<float> recent_;  // a ring once it is as long as the history
  size_t oldest_ = 0;          // its index in recent_
  std::vector<float> sorted_;  // recent_ when it was last sorted
  size_t unsorted_ = 0;        // candidates since then
};

// A fixed share of the samples, without replacement and with chances in proportion to their values:
// the number of batches of an epoch is known ahead, which a learning-rate schedule may need.
// Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006), in its exponential
// form: selects the samples with the least -ln(u) / weight.
class WeightedShare : public Selector {
 public:
  using Selector::Selector;

 protected:
  void choose(Random* random, std::span<const float> values, std::vector<bool>* chosen) override {
    const double least = least_weight(values);
    std::vector<std::pair<double, uint32_t>> keys;
    keys.reserve(values.size());
    for (uint32_t sample = 0; sample < values.size(); ++sample) {
      const double drawn = -std::log(random->unit());
      const bool known = is_known(values[sample]);
      const double weight = known ? std::max<double>(values[sample], least) : 1;
      keys.emplace_back(known ? drawn / weight : 0, sample);
    }
    const auto wanted = static_cast<size_t>(
        std::llround(std::clamp(settings().share, 0.0, 1.0) * static_cast<double>(keys.size())));
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::nth_element(keys.begin(), end, keys.end());
    for (auto at = keys.begin(); at != end; ++at) (*chosen)[at->second] = true;
    for (auto at = end; at != keys.end(); ++at) {
      if (at->first == 0) (*chosen)[at->second] = true;  // never trained
    }
  }

 private:
  // The weight of a loss of 0 or below, which still has a chance: a thousandth of the mean.
  static double least_weight(std::span<const float> values) {
    double sum = 0;
    size_t count = 0;
    for (const float value : values) {
      if (!is_known(value) || value <= 0) continue;
      sum += value;
      ++count;
    }
    return count == 0 ? 1 : sum / static_cast<double>(count) / 1000;
  }
};

template <typename Kind>
std::unique_ptr<Selector> make(const SelectionSettings& settings) {
  return std::make_unique<Kind>(settings);
}

constexpr SelectorInfo kSelectors[] = {
    {"loss", "each by its loss's percentile, about half of them (iCache)", make<LossPercentile>},
    {"share", "a fixed share, chances in proportion to the loss", make<WeightedShare>},
};

}  // namespace

bool Selector::fetches_all(uint32_t epoch) const {
  if (epoch < settings_.warm_up) return true;
  return settings_.full_every != 0 && (epoch - settings_.warm_up + 1) % settings_.full_every == 0;
}

std::vector<bool> Selector::select(uint32_t epoch, std::span<const float> values) {
  std::vector<bool> chosen(values.size());
  Random random(mixed(mixed(settings_.seed) ^ epoch));
  if (!fetches_all(epoch)) choose(&random, values, &chosen);
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end()) chosen.flip();
  return chosen;
}

std::span<const SelectorInfo> selectors() { return kSelectors; }

const SelectorInfo* find_selector(std::string_view name) {
  for (const SelectorInfo& info : kSelectors) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

}  // namespace sluice::policy
