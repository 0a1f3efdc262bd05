// The exact part of SHADE. Pure; see policy.h.
#pragma once

#include "policy/replacement/ranked_set.h"

namespace sluice::policy {

// SHADE (Khan et al., "SHADE: enable fundamental cacheability for distributed deep learning
// training", FAST 2023) scores samples by their loss, trains on important ones several times an
// epoch, and retains the important ones in the cache. Drawing more often changes what is trained on
// and is not here; what is exact is the cache. Without importances all samples rank equal, nothing
// is displaced, and what remains of SHADE is MinIO.
class Shade : public RankedSet<float> {
 public:
  using RankedSet::RankedSet;

  void set_importance(SampleId sample, float importance) override { set_key(sample, importance); }
  float importance(SampleId sample) const override { return key(sample); }
};

}  // namespace sluice::policy
