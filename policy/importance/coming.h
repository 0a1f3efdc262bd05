// The H-samples of the epoch after the one that begins, as far as they are known by then. Pure.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "policy/importance/h_list.h"
#include "policy/importance/selector.h"

namespace sluice::policy {

// Immutable; any thread.
class Coming {
 public:
  // Of the epoch after `epoch`. `values` by sample, unknown for those that are no candidates.
  // *entries: its H-samples if values stay as they are, see importance(). About 0.15 s for a
  // million samples.
  Coming(const Selector& selector, uint32_t epoch, std::span<const float> values,
         Selector::Candidates candidates, double h_share, std::vector<HListEntry>* entries);

  // Once the candidate has that value: by how much it will be selected (Outlook::margin); if that
  // epoch fetches all, in the next that does not, or 0. Nothing: it will be no H-sample.
  std::optional<float> importance(SampleId sample, float value) const;

 private:
  std::unique_ptr<const Outlook> outlook_;  // nullptr: all epochs fetch all
  bool fetches_all_ = false;
  float least_ = -std::numeric_limits<float>::infinity();  // value of an H-sample
};

}  // namespace sluice::policy
