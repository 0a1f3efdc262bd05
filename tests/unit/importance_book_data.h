// What the tests of ImportanceBook share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "policy/importance/book.h"
#include "tests/unit/selected.h"

namespace sluice::policy {

inline constexpr uint64_t kSamples = 1000;

inline uint64_t count(const std::vector<bool>& chosen) {
  return static_cast<uint64_t>(std::count(chosen.begin(), chosen.end(), true));
}

using Requester = ImportanceBook::Requester;

// A job of one session and process.
inline Requester of(uint32_t job, uint32_t dataset, uint64_t samples = kSamples) {
  return {job, SessionId{job}, 100 + job, DatasetId{dataset}, samples};
}

inline void report_all(ImportanceBook* book, uint32_t job, uint32_t dataset) {
  for (uint64_t sample = 0; sample < kSamples; ++sample) {
    EXPECT_TRUE(book->report(of(job, dataset), sample, static_cast<double>(sample),
                             static_cast<uint32_t>(sample % 3)));
  }
}

inline std::vector<bool> select(ImportanceBook* book, const Requester& requester, uint32_t epoch) {
  return test::selected(book, requester, epoch, {}, {}, 0);
}

}  // namespace sluice::policy
