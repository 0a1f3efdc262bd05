#include "optimizer/importance/jobs.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "optimizer/importance/values.h"

namespace sluice::optimizer {

void BenefitProbe::batch(double seconds) {
  if (phase_ == Phase::kDone || !(seconds > 0)) return;
  seconds_ += seconds;
  if (++batches_ < kProbeBatches) return;
  if (phase_ == Phase::kUncached) {
    uncached_ = seconds_;
    phase_ = Phase::kCached;
  } else {
    benefit_ = uncached_ / seconds_;
    phase_ = Phase::kDone;
  }
  batches_ = 0;
  seconds_ = 0;
}

std::vector<float> relative_importance(std::span<const float> values) {
  std::vector<float> sorted;
  sorted.reserve(values.size());
  std::copy_if(values.begin(), values.end(), std::back_inserter(sorted), is_known);
  std::sort(sorted.begin(), sorted.end());
  std::vector<float> relative(values.size());
  for (size_t sample = 0; sample < values.size(); ++sample) {
    if (!is_known(values[sample])) continue;
    const auto above = std::upper_bound(sorted.begin(), sorted.end(), values[sample]);
    relative[sample] =
        static_cast<float>(above - sorted.begin()) / static_cast<float>(sorted.size());
  }
  return relative;
}

std::vector<float> adjusted_importance(std::span<const JobImportance> jobs) {
  std::vector<float> adjusted;
  for (const JobImportance& job : jobs) {
    const std::vector<float> relative = relative_importance(job.values);
    if (relative.size() > adjusted.size()) adjusted.resize(relative.size(), kUnknownImportance);
    for (size_t sample = 0; sample < relative.size(); ++sample) {
      if (!is_known(job.values[sample])) continue;
      const auto part = static_cast<float>(job.benefit * relative[sample]);
      adjusted[sample] = is_known(adjusted[sample]) ? adjusted[sample] + part : part;
    }
  }
  return adjusted;
}

}  // namespace sluice::optimizer
