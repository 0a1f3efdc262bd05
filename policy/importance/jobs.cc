#include "policy/importance/jobs.h"

#include <algorithm>
#include <cstddef>

#include "policy/importance/percentiles.h"
#include "policy/importance/values.h"

namespace sluice::policy {
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

void BenefitEstimate::begun(uint64_t now_ns, bool hit) {
  if (timed_ == 0) {
    began_ns_ = now_ns;
    hits_ = 0;
  } else if (hit) {
    ++hits_;
  }
  if (timed_++ < kTogether) return;
  if (hits_ >= kTogether - kTogether / 20 && now_ns > began_ns_) {
    sample_ns_.push_back(static_cast<double>(now_ns - began_ns_) / kTogether);
    if (sample_ns_.size() > kRemembered) sample_ns_.pop_front();
  }
  began_ns_ = now_ns;
  timed_ = 1;
  hits_ = 0;
}

std::optional<double> BenefitEstimate::benefit(double storage_ns) const {
  if (sample_ns_.size() < kNeeded) return {};
  std::vector<double> sorted(sample_ns_.begin(), sample_ns_.end());
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return std::max(storage_ns / *middle, 1.0);
}

std::vector<float> relative_importance(std::span<const float> values) {
  const Percentiles percentiles(values);
  std::vector<float> relative(values.size());
  for (size_t sample = 0; sample < values.size(); ++sample) {
    if (is_known(values[sample])) relative[sample] = percentiles.of(values[sample]);
  }
  return relative;
}

std::vector<float> adjusted_importance(std::span<const JobImportance> jobs) {
  std::vector<float> adjusted;
  for (const JobImportance& job : jobs) {
    const std::vector<float> found =
        job.relative.empty() ? relative_importance(job.values) : std::vector<float>();
    const std::span<const float> relative = job.relative.empty() ? found : job.relative;
    if (relative.size() > adjusted.size()) adjusted.resize(relative.size(), kUnknownImportance);
    for (size_t sample = 0; sample < relative.size(); ++sample) {
      if (!is_known(job.values[sample])) continue;
      const auto part = static_cast<float>(job.benefit * relative[sample]);
      adjusted[sample] = is_known(adjusted[sample]) ? adjusted[sample] + part : part;
    }
  }
  return adjusted;
}

}  // namespace sluice::policy
