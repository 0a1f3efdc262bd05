// I/O-oriented importance sampling (IIS): which samples an epoch fetches and trains, decided before
// it begins from the importance values of their last training. iCache, section III-A. Pure.
//
// The number that is drawn for a sample follows from the seed, the epoch and the sample alone. So
// what later epochs select is known ahead, but for how values change until then: see Outlook.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "policy/util/random.h"

namespace sluice::policy {

struct SelectionSettings {
  uint32_t warm_up = 5;  // epochs that fetch all samples, until values are meaningful
  // After them, every full_every-th epoch fetches all, to refresh the values. 0: none.
  uint32_t full_every = 3;
  double beta = 1;          // loss: (percentile of the loss)^beta is the selection probability
  uint32_t history = 1024;  // loss: values among which the percentile is taken; at least 1
  double share = 0.5;       // share: of all samples, to be selected
  uint64_t seed = 1;
};

// What a later epoch selects, as far as that is decided: the numbers that are drawn. Immutable.
class Outlook {
 public:
  Outlook() = default;
  Outlook(const Outlook&) = delete;
  Outlook& operator=(const Outlook&) = delete;
  virtual ~Outlook() = default;

  // By how much a candidate would be selected, in (0, 1], or not be, in [-1, 0], if it had that
  // value then, and others what they had: the larger the more its own may fall. One of unknown
  // value counts as one in the middle, since it will have been trained.
  virtual float margin(uint32_t sample, float value) const = 0;
};

class Selector {
 public:
  explicit Selector(const SelectionSettings& settings) : settings_(settings) {}
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;
  virtual ~Selector() = default;

  // By sample, 0 for those that are none; empty: all are.
  using Candidates = std::span<const uint8_t>;

  // Which samples epoch `epoch` (counted from 0) fetches, by sample. `values` are the importance
  // values, by sample, those of candidates are compared among themselves; a candidate of unknown
  // value is always selected, and if none would be selected, all are. The same calls in the same
  // order select the same. About 0.1 s for a million samples.
  std::vector<bool> select(uint32_t epoch, std::span<const float> values,
                           Candidates candidates = {});

  // Of an epoch that does not fetch all, from such values. Independent of calls of select(). About
  // 0.1 s for a million samples.
  virtual std::unique_ptr<const Outlook> outlook(uint32_t epoch, std::span<const float> values,
                                                 Candidates candidates = {}) const = 0;

  bool fetches_all(uint32_t epoch) const;
  // The first epoch from `epoch` on that does not fetch all, within the next kHorizon; or none.
  std::optional<uint32_t> next_selection(uint32_t epoch) const;
  static constexpr uint32_t kHorizon = 64;

 protected:
  // Selects for an epoch that does not fetch all; *chosen is all false.
  virtual void choose(uint32_t epoch, std::span<const float> values, Candidates candidates,
                      std::vector<bool>* chosen) = 0;
  const SelectionSettings& settings() const { return settings_; }
  uint64_t seed_of(uint32_t epoch) const { return mixed(mixed(settings_.seed) ^ epoch); }
  static bool is_candidate(Candidates candidates, size_t sample) {
    return candidates.empty() || candidates[sample] != 0;
  }

 private:
  const SelectionSettings settings_;
};

struct SelectorInfo {
  const char* name;     // as users write it
  const char* meaning;  // for a user, a few words
  std::unique_ptr<Selector> (*make)(const SelectionSettings& settings);
};

// In the order in which they are shown.
std::span<const SelectorInfo> selectors();

// nullptr if there is none of that name.
const SelectorInfo* find_selector(std::string_view name);

}  // namespace sluice::policy
