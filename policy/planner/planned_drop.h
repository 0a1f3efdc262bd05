// Pages that the planner wants dropped from the page cache. Plain data.
#pragma once

#include <cstdint>

#include "policy/util/ids.h"
#include "policy/util/interval_set.h"

namespace sluice::policy {

struct PlannedDrop {
  // kBehind: passed by streams, or without a reader. kSpent: of a record that was read and is not
  // retained.
  enum Why : uint8_t { kBehind, kSpent };
  FileId file{};
  Range range;
  Why why = kBehind;
  unsigned tries = 0;  // kSpent: failed attempts before this one
};

}  // namespace sluice::policy
