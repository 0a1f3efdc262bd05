// A stage whose storage answers as its tests say.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "policy/copies/stage_plan.h"

namespace sluice::policy {

inline constexpr uint64_t kBytes = 100'000;
inline constexpr uint64_t kDevice = 42;
inline constexpr uint64_t kMillisecond = 1'000'000;

// A stage whose storage answers as the test says, and what jobs would see of it.
class StagePlanTest : public testing::Test {
 protected:
  static constexpr uint64_t kMuch = 1ULL << 40;

  SampleFileId file(int i) { return files.intern("/data/" + std::to_string(i)); }
  std::vector<SampleFileId> numbers(const std::vector<int>& samples) {
    std::vector<SampleFileId> out;
    out.reserve(samples.size());
    for (const int i : samples) out.push_back(file(i));
    return out;
  }

  // `order` is read next; `readers` are those that were wanted for a sample that is not read yet.
  void predict(const std::vector<int>& order, const std::vector<int>& readers = {}) {
    plan.predict({numbers(order), numbers(readers)});
    check();
  }

  // True if the copy is there, or on its way, afterwards.
  bool want(int i) {
    now += kMillisecond;
    const FetchVerdict answer = plan.judge(file(i), now, SessionId{1});
    if (answer == FetchVerdict::kTake) flying.push_back(plan.start(file(i), SessionId{1}, now));
    check();
    return answer != FetchVerdict::kLater;
  }
  void arrive() {
    for (const PlannedFetch& fetch : flying) {
      now += kMillisecond;
      if (fetch.check) {
        plan.on_valid(fetch);
        continue;
      }
      ++fetched;
      if (plan.on_staged(fetch, kDevice, kBytes, FileTable::charge(kBytes), now)) {
        there.insert(fetch.file);
      }
    }
    flying.clear();
    check();
  }
  void check() {
    for (const SampleFileId gone : plan.table().take_evicted()) {
      EXPECT_EQ(there.erase(gone), 1U) << "evicted twice, or never staged: " << number(gone);
    }
    EXPECT_LE(plan.table().used(), plan.room().budget());
    EXPECT_LE(plan.table().ahead(), plan.table().used());
    uint64_t charged = there.size() * FileTable::charge(kBytes);
    EXPECT_GE(plan.table().used(), charged);
  }

  FileTable files;
  StagePlan plan{&files};
  std::vector<PlannedFetch> flying;
  std::set<SampleFileId> there;
  uint64_t now = 1'000'000'000'000;
  int fetched = 0;
};

}  // namespace sluice::policy
