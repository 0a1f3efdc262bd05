// I/O-oriented importance sampling (IIS): which samples an epoch fetches and trains, decided before
// it begins from the importance values of their last training. iCache, section III-A. Pure.
#pragma once

#include <cstdint>
#include <memory>
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

class Selector {
 public:
  explicit Selector(const SelectionSettings& settings) : settings_(settings) {}
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;
  virtual ~Selector() = default;

  // Which samples epoch `epoch` (counted from 0) fetches, by sample. `values` are the importance
  // values, by sample; a sample of unknown value is always selected, and if no sample would be
  // selected, all are. The same calls in the same order select the same. About 0.1 s for a million
  // samples.
  std::vector<bool> select(uint32_t epoch, std::span<const float> values);

  bool fetches_all(uint32_t epoch) const;

 protected:
  // Selects for an epoch that does not fetch all. `random` is seeded for it; *chosen is all false.
  virtual void choose(Random* random, std::span<const float> values, std::vector<bool>* chosen) = 0;
  const SelectionSettings& settings() const { return settings_; }

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
