// Retains what comes first in its file. Pure; see policy.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policy/replacement/ranked_set.h"

namespace sluice::policy {

// Where neighbouring records are read in one request, retained ones that are scattered among the
// others would cut each request to pieces. As a part of all that is read at random the beginning of
// a file is as good as any other.
class FileOrder : public RankedSet<uint32_t> {
 public:
  using RankedSet::RankedSet;

  void set_page(SampleId sample, uint64_t page) override {
    set_key(sample, UINT32_MAX - static_cast<uint32_t>(std::min<uint64_t>(page, UINT32_MAX)));
  }
};

}  // namespace sluice::policy
