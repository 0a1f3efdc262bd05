#include "policy/importance/selector.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "policy/importance/percentiles.h"
#include "policy/importance/values.h"

namespace sluice::policy {
namespace {

// In (0, 1): decides about the sample in an epoch of that seed.
double drawn(uint64_t seed, uint32_t sample) { return unit_of(mixed(seed + sample)); }

// Selection by loss percentile: Jiang et al., "Accelerating deep learning by focusing on the
// biggest losers" (arXiv 1910.00762), reference [18] of iCache. A candidate is selected with the
// probability CDF(loss)^beta, the CDF being that of the losses of the last candidates, selected or
// not. That paper recomputes the loss of every candidate; here it is the one observed when the
// sample was last trained, since computing it would require a fetch. Candidates come in random
// order, so that the history is a sample of all of them.
class LossPercentile : public Selector {
 public:
  using Selector::Selector;

  std::unique_ptr<const Outlook> outlook(uint32_t epoch, std::span<const float> values,
                                         Candidates candidates) const override {
    std::vector<float> known(values.begin(), values.end());
    for (size_t sample = 0; sample < known.size(); ++sample) {
      if (!is_candidate(candidates, sample)) known[sample] = kUnknownImportance;
    }
    return std::make_unique<Ahead>(seed_of(epoch), settings().beta, Percentiles(known));
  }

 protected:
  void choose(uint32_t epoch, std::span<const float> values, Candidates candidates,
              std::vector<bool>* chosen) override {
    const uint64_t seed = seed_of(epoch);
    order_.clear();
    for (uint32_t sample = 0; sample < values.size(); ++sample) {
      if (is_candidate(candidates, sample)) order_.push_back(sample);
    }
    Random random(seed);
    random.shuffle(&order_);
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
      (*chosen)[sample] = drawn(seed, sample) < chance(percentile, settings().beta);
      remember(value);
      if (++unsorted_ >= settings().history) sort();
    }
  }

 private:
  static constexpr size_t kAhead = 16;  // with millions of samples each value is a cache miss

  static double chance(double percentile, double beta) {
    return beta == 1 ? percentile : std::pow(percentile, beta);
  }
  class Ahead : public Outlook {
   public:
    Ahead(uint64_t seed, double beta, Percentiles percentiles)
        : seed_(seed), beta_(beta), percentiles_(std::move(percentiles)) {}
    float margin(uint32_t sample, float value) const override {
      const double percentile = is_known(value) ? percentiles_.of(value) : 0.5;
      return static_cast<float>(chance(percentile, beta_) - drawn(seed_, sample));
    }

   private:
    const uint64_t seed_;
    const double beta_;
    const Percentiles percentiles_;
  };
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

  std::unique_ptr<const Outlook> outlook(uint32_t epoch, std::span<const float> values,
                                         Candidates candidates) const override {
    const Weights weights(values, candidates);
    std::vector<Key> keys = keys_of(seed_of(epoch), weights, values, candidates, false);
    const auto end = least(&keys);
    const double limit = end == keys.end() ? std::numeric_limits<double>::infinity() : end->first;
    return std::make_unique<Ahead>(seed_of(epoch), weights, limit);
  }

 protected:
  void choose(uint32_t epoch, std::span<const float> values, Candidates candidates,
              std::vector<bool>* chosen) override {
    const Weights weights(values, candidates);
    std::vector<Key> keys = keys_of(seed_of(epoch), weights, values, candidates, true);
    const auto end = least(&keys);
    for (auto at = keys.begin(); at != end; ++at) (*chosen)[at->second] = true;
    for (auto at = end; at != keys.end(); ++at) {
      if (at->first == 0) (*chosen)[at->second] = true;  // never trained
    }
  }

 private:
  using Key = std::pair<double, uint32_t>;  // and the sample: those with the least are selected

  struct Weights {
    Weights(std::span<const float> values, Candidates candidates) {
      double sum = 0;
      size_t count = 0;
      for (size_t sample = 0; sample < values.size(); ++sample) {
        const float value = values[sample];
        if (!is_candidate(candidates, sample) || !is_known(value) || value <= 0) continue;
        sum += value;
        ++count;
      }
      if (count == 0) return;
      none = false;
      mean = sum / static_cast<double>(count);
      least = mean / 1000;
    }
    double of(float value) const {
      return is_known(value) && !none ? std::max<double>(value, least) : mean;
    }
    bool none = true;  // is known: all are alike
    double mean = 1;
    double least = 1;  // of a loss of 0 or below, which still has a chance
  };
  class Ahead : public Outlook {
   public:
    Ahead(uint64_t seed, const Weights& weights, double limit)
        : seed_(seed), weights_(weights), limit_(limit) {}
    float margin(uint32_t sample, float value) const override {
      if (std::isinf(limit_)) return 1;  // all are selected
      const double key = key_of(seed_, sample, weights_.of(value));
      return static_cast<float>((limit_ - key) / (limit_ + key));
    }

   private:
    const uint64_t seed_;
    const Weights weights_;
    const double limit_;
  };

  static double key_of(uint64_t seed, uint32_t sample, double weight) {
    return -std::log(drawn(seed, sample)) / weight;
  }
  // `unknown_first`: those of unknown value have 0.
  static std::vector<Key> keys_of(uint64_t seed, const Weights& weights,
                                  std::span<const float> values, Candidates candidates,
                                  bool unknown_first) {
    std::vector<Key> keys;
    keys.reserve(values.size());
    for (uint32_t sample = 0; sample < values.size(); ++sample) {
      if (!is_candidate(candidates, sample)) continue;
      const bool first = unknown_first && !is_known(values[sample]);
      keys.emplace_back(first ? 0 : key_of(seed, sample, weights.of(values[sample])), sample);
    }
    return keys;
  }
  // Those before the result have the least keys, and it has the least of the others.
  std::vector<Key>::iterator least(std::vector<Key>* keys) const {
    const auto wanted = static_cast<size_t>(
        std::llround(std::clamp(settings().share, 0.0, 1.0) * static_cast<double>(keys->size())));
    const auto end = keys->begin() + static_cast<std::ptrdiff_t>(wanted);
    if (end != keys->end()) std::nth_element(keys->begin(), end, keys->end());
    return end;
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

std::optional<uint32_t> Selector::next_selection(uint32_t epoch) const {
  for (uint32_t ahead = 0; ahead < kHorizon; ++ahead) {
    if (!fetches_all(epoch + ahead)) return epoch + ahead;
  }
  return std::nullopt;
}

std::vector<bool> Selector::select(uint32_t epoch, std::span<const float> values,
                                   Candidates candidates) {
  std::vector<bool> chosen(values.size());
  if (!fetches_all(epoch)) choose(epoch, values, candidates, &chosen);
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end()) {
    for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = is_candidate(candidates, i);
  }
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
