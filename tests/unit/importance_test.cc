// Importance values, what an epoch fetches, and what of it is retained: against slow and obvious
// models, and against what the papers publish.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/importance/h_cache.h"
#include "policy/importance/h_list.h"
#include "policy/importance/jobs.h"
#include "policy/importance/selector.h"
#include "policy/importance/split.h"
#include "policy/importance/values.h"
#include "policy/util/random.h"
#include "tests/unit/importance_data.h"

namespace sluice::policy {
namespace {

size_t count_of(const std::vector<bool>& chosen) {
  return static_cast<size_t>(std::count(chosen.begin(), chosen.end(), true));
}

TEST(ImportanceValues, ALossThatDivergedSaysNothing) {
  ImportanceValues values(3);
  EXPECT_FALSE(is_known(values.all()[1]));
  EXPECT_TRUE(values.observe(1, 2.5F));
  EXPECT_FALSE(values.observe(1, std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(values.observe(1, std::nanf("")));
  EXPECT_FALSE(values.observe(3, 1)) << "there is no such sample";
  EXPECT_EQ(values.all()[1], 2.5F);
  EXPECT_EQ(values.known(), 1U);
}

class EverySelector : public ::testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<Selector> make(const SelectionSettings& settings = {}) {
    return find_selector(GetParam())->make(settings);
  }
};

TEST_P(EverySelector, FetchesAllWhileItWarmsUpAndEveryThirdTimeAfterwards) {
  const auto values = random_values(5000, 1);
  const auto selector = make();
  for (uint32_t epoch = 0; epoch < 20; ++epoch) {
    const bool full = epoch < 5 || (epoch - 5) % 3 == 2;
    EXPECT_EQ(selector->fetches_all(epoch), full) << epoch;
    const size_t selected = count_of(selector->select(epoch, values));
    EXPECT_NEAR(static_cast<double>(selected), full ? 5000 : 2500, full ? 0 : 125) << epoch;
  }
}

TEST_P(EverySelector, ChoosesTheSameForTheSameSeed) {
  const auto values = random_values(1000, 1);
  const auto once = make(), again = make(), other = make({.seed = 2});
  const auto chosen = once->select(6, values);
  EXPECT_EQ(chosen, again->select(6, values));
  EXPECT_NE(chosen, other->select(6, values));
  EXPECT_NE(chosen, once->select(8, values)) << "another epoch, another choice";
}

TEST_P(EverySelector, SelectsWhatMattersMoreOftenAndWhatIsUnknownAlways) {
  auto values = random_values(2000, 1);
  const auto selector = make({.warm_up = 0, .full_every = 0});
  std::vector<uint32_t> order(2000);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return values[a] < values[b]; });
  values[order[3]] = kUnknownImportance;
  std::vector<int> times(2000);
  for (uint32_t epoch = 0; epoch < 100; ++epoch) {
    const auto chosen = selector->select(epoch, values);
    for (uint32_t sample = 0; sample < 2000; ++sample) times[sample] += chosen[sample] ? 1 : 0;
  }
  EXPECT_EQ(times[order[3]], 100);
  const auto mean = [&](size_t begin, size_t end) {
    double sum = 0;
    for (size_t at = begin; at < end; ++at) sum += times[order[at]];
    return sum / static_cast<double>(end - begin);
  };
  EXPECT_LT(mean(10, 500), mean(500, 1000));
  EXPECT_LT(mean(500, 1000), mean(1000, 1500));
  EXPECT_LT(mean(1000, 1500), mean(1500, 2000));
  EXPECT_GT(mean(10, 500), 0) << "none is given up";
}

TEST_P(EverySelector, OddValuesDoNotStopIt) {
  const auto selector = make({.warm_up = 0, .full_every = 0});
  EXPECT_TRUE(selector->select(0, {}).empty());
  EXPECT_EQ(count_of(selector->select(1, std::vector<float>(100, kUnknownImportance))), 100U);
  EXPECT_GT(count_of(selector->select(2, std::vector<float>(100, 0))), 0U);
  EXPECT_GT(count_of(selector->select(3, std::vector<float>(100, -3))), 0U);
  EXPECT_EQ(count_of(selector->select(4, std::vector<float>(1, 0.5F))), 1U);
}

INSTANTIATE_TEST_SUITE_P(Selectors, EverySelector, ::testing::Values("loss", "share"));

TEST(LossPercentile, BetaMakesItChoosier) {
  const auto values = random_values(5000, 1);
  for (const double beta : {0.5, 1.0, 2.0}) {
    const auto selector =
        find_selector("loss")->make({.warm_up = 0, .full_every = 0, .beta = beta});
    // The mean of p^beta over percentiles p is 1 / (1 + beta).
    EXPECT_NEAR(static_cast<double>(count_of(selector->select(0, values))) / 5000, 1 / (1 + beta),
                0.03);
  }
}

// paper-figures.md: over 90 epochs IIS fetches 31.7 % fewer (the paper: up to 31.4 %).
TEST(LossPercentile, FetchesAsMuchLessAsThePaperSays) {
  const auto values = random_values(5000, 1);
  const auto selector = find_selector("loss")->make({});
  double fetched = 0;
  for (uint32_t epoch = 0; epoch < 90; ++epoch) {
    fetched += static_cast<double>(count_of(selector->select(epoch, values)));
  }
  EXPECT_NEAR(fetched / 90 / 5000, 0.683, 0.005);
}

TEST(HList, IsTheTopOfWhatWasSelected) {
  const std::vector<float> values{5, 1, 4, 4, kUnknownImportance, 3, 2, 9, 8, 7};
  std::vector<bool> chosen(10, true);
  chosen[7] = false;
  const auto entries = top_of(chosen, values, 0.5);  // of nine: 4.5, rounded away from zero
  const HList list(10, entries);
  EXPECT_EQ(list.size(), 5U);
  for (const SampleId sample : {8U, 9U, 0U, 2U, 3U}) EXPECT_TRUE(list.contains(sample)) << sample;
  EXPECT_FALSE(list.contains(7)) << "it was not selected";
  EXPECT_EQ(list.importance(0), 5);
  EXPECT_LT(list.importance(1), -1e30F);
  EXPECT_FALSE(list.contains(1000));
  const std::vector<HListEntry> odd{{3, 1}, {10, 2}, {4, std::nan("")}, {3, 2}};
  const HList made(10, odd);
  EXPECT_EQ(made.size(), 1U);
  EXPECT_EQ(made.importance(3), 2);
}

std::shared_ptr<const HList> list_of(uint32_t samples, std::span<const float> values,
                                     double share) {
  return std::make_shared<const HList>(samples,
                                       top_of(std::vector<bool>(samples, true), values, share));
}

// Algorithm 1, lines 4 to 18, word for word, with samples of one size.
class Algorithm1 {
 public:
  Algorithm1(size_t capacity, const HList* list) : capacity_(capacity), list_(list) {}
  bool request(SampleId id) {  // true: read from the H-cache
    if (!list_->contains(id)) return false;
    if (cache_.count(id) != 0) return true;
    if (cache_.size() < capacity_) {
      cache_.insert(id);
    } else {
      const SampleId least = *std::min_element(cache_.begin(), cache_.end(), [&](auto a, auto b) {
        return std::pair(list_->importance(a), a) < std::pair(list_->importance(b), b);
      });
      if (list_->importance(id) > list_->importance(least)) {
        cache_.erase(least);
        cache_.insert(id);
      }
    }
    return false;
  }
  void set_list(const HList* list) { list_ = list; }
  const std::set<SampleId>& cache() const { return cache_; }

 private:
  const size_t capacity_;
  const HList* list_;
  std::set<SampleId> cache_;
};

TEST(HCache, DecidesAsAlgorithm1Does) {
  constexpr uint32_t kSamples = 60;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::shared_ptr<const HList> list = list_of(kSamples, random_values(kSamples, seed), 0.7);
    const uint32_t capacity = 1 + random.below(30);
    HCache cache(capacity, kSamples);
    Algorithm1 model(capacity, list.get());
    cache.set_list(list);
    std::vector<SampleId> evicted;
    for (unsigned step = 0; step < 3000; ++step) {
      if (step % 500 == 499) {  // an epoch ends; its list is taken over before anybody asks
        list = list_of(kSamples, random_values(kSamples, seed + step), 0.7);
        cache.set_list(list);
        model.set_list(list.get());
        while (cache.take_over(1)) continue;
      }
      const SampleId sample = random.below(kSamples);
      // What is no H-sample any more may still be retained: that is a hit, and not Algorithm 1's.
      const bool was_retained = cache.retained(sample);
      const bool hit = cache.access(0, sample, 1, &evicted) == Decision::kHit;
      EXPECT_EQ(hit, was_retained);
      if (list->contains(sample)) {
        EXPECT_EQ(hit, model.request(sample));
      }
      for (SampleId id = 0; id < kSamples; ++id) {
        ASSERT_EQ(cache.retained(id), model.cache().count(id) != 0) << id << " at step " << step;
      }
    }
  }
}

// While a list is taken over requests go on: some entries with each, never all at once.
TEST(HCache, ANewListIsTakenOverALittleWithEachRequest) {
  constexpr uint32_t kSamples = 100'000;
  auto list = list_of(kSamples, random_values(kSamples, 1), 1);
  HCache cache(kSamples / 2, kSamples);
  cache.set_list(list);
  std::vector<SampleId> evicted;
  for (SampleId id = 0; id < kSamples; ++id) cache.access(0, id, 1, &evicted);
  ASSERT_EQ(cache.count(), kSamples / 2);
  EXPECT_EQ(cache.swaps(), 1U);
  const auto next = list_of(kSamples, random_values(kSamples, 2), 0.7);
  cache.set_list(next);
  const auto later = list_of(kSamples, random_values(kSamples, 3), 0.7);
  uint32_t requests = 0;
  Random random(4);
  for (; cache.swaps() == 1; ++requests) {
    if (requests == 10) cache.set_list(later);  // waits until the first is taken over
    const SampleId sample = random.below(kSamples);
    cache.access(0, sample, 1, &evicted);
    for (const SampleId gone : evicted) {
      if (cache.swaps() != 1) break;  // that was the last of it
      EXPECT_LT(next->importance(gone), next->importance(sample)) << "never for a lesser one";
    }
    EXPECT_LE(cache.used(), cache.capacity());
    EXPECT_EQ(cache.count(), cache.used());
  }
  EXPECT_GT(requests, kSamples / 2 / 32 / 2) << "not all at once";
  EXPECT_LE(requests, kSamples / 2 / 32 + 2);
  EXPECT_EQ(&cache.list(), later.get());
  while (cache.take_over(1000)) continue;
  EXPECT_EQ(cache.swaps(), 3U);
  std::set<SampleId> retained;
  for (uint32_t place = 0; place < cache.count(); ++place) retained.insert(cache.at(place));
  EXPECT_EQ(retained.size(), cache.count());
}

TEST(HCache, RoomThatHSamplesLeaveIsFilledWithOthers) {
  HCache cache(4, 6, true);
  std::vector<SampleId> evicted;
  for (SampleId id = 0; id < 6; ++id) {  // no list yet: all are alike
    EXPECT_EQ(cache.access(0, id, 1, &evicted), id < 4 ? Decision::kRetain : Decision::kPass);
  }
  const std::vector<float> values{0, 0, 1, 0, 2, 3};
  cache.set_list(list_of(6, values, 0.5));  // of these 2, 4 and 5
  EXPECT_EQ(cache.access(0, 1, 1, &evicted), Decision::kHit);
  EXPECT_EQ(cache.access(0, 4, 1, &evicted), Decision::kRetain);
  EXPECT_EQ(cache.access(0, 5, 1, &evicted), Decision::kRetain);
  EXPECT_TRUE(cache.retained(2)) << "an H-sample stays while others can make room";
  for (const SampleId other : {0U, 1U, 3U}) {
    if (!cache.retained(other)) {
      EXPECT_EQ(cache.access(0, other, 1, &evicted), Decision::kPass) << "it evicts nothing";
    }
  }
  EXPECT_EQ(cache.count(), 4U);
}

// A sample that was evicted in an epoch before it was requested there had been retained for
// nothing.
TEST(HCache, WhatIsStillRequestedInThisEpochIsEvictedAfterWhatWas) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto list = std::make_shared<HList>(*list_of(6, values, 1));
  const HCache::Awaited awaited(6, true);
  HCache cache(3, 6);
  std::vector<SampleId> evicted;
  cache.set_list(list, awaited);
  for (const SampleId id : {0U, 1U, 2U}) cache.access(0, id, 1, &evicted);
  cache.set_list(list, awaited);
  EXPECT_EQ(cache.access(0, 5, 1, &evicted), Decision::kPass) << "all three come";
  EXPECT_EQ(cache.access(0, 1, 1, &evicted), Decision::kHit);
  EXPECT_EQ(cache.access(0, 3, 1, &evicted), Decision::kRetain);
  EXPECT_EQ(evicted, std::vector<SampleId>{1}) << "although 0 is less important";
  EXPECT_EQ(cache.access(0, 0, 1, &evicted), Decision::kHit);
  EXPECT_EQ(cache.access(0, 4, 1, &evicted), Decision::kRetain);
  EXPECT_EQ(evicted, std::vector<SampleId>{0});
  EXPECT_EQ(cache.access(0, 0, 1, &evicted), Decision::kPass) << "it is less important than all";
  // What is not awaited is not requested.
  const std::vector<float> reversed{6, 5, 4, 3, 2, 1};
  const auto half = std::make_shared<HList>(*list_of(6, reversed, 0.5));
  cache.set_list(half, HCache::Awaited{true, true, true});
  EXPECT_EQ(cache.access(0, 0, 1, &evicted), Decision::kRetain);
  EXPECT_FALSE(evicted.empty() || evicted.front() == 2) << "2 is in the list";
  cache.set_capacity(1, &evicted);
  EXPECT_EQ(cache.count(), 1U);
}

TEST(HCache, TakesSizesIntoAccount) {
  const std::vector<float> values{1, 2, 3, 4, 5};
  HCache cache(10, 5);
  cache.set_list(list_of(5, values, 1));
  std::vector<SampleId> evicted;
  EXPECT_EQ(cache.access(0, 0, 4, &evicted), Decision::kRetain);
  EXPECT_EQ(cache.access(0, 3, 6, &evicted), Decision::kRetain);
  EXPECT_EQ(cache.access(0, 2, 5, &evicted), Decision::kPass) << "one of the two matters more";
  EXPECT_TRUE(cache.retained(0) && cache.retained(3)) << "none was evicted for nothing";
  EXPECT_EQ(cache.access(0, 4, 9, &evicted), Decision::kRetain);
  EXPECT_EQ(evicted.size(), 2U);
  cache.drop(4);
  EXPECT_EQ(cache.used(), 0U);
}

TEST(BenefitProbe, ComparesTwentyBatchesWithTwenty) {
  BenefitProbe probe;
  probe.begin_epoch(false);
  EXPECT_EQ(probe.phase(), BenefitProbe::Phase::kDone) << "a job alone is not probed";
  EXPECT_FALSE(probe.eligible());
  probe.begin_epoch(true);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(probe.phase(), BenefitProbe::Phase::kUncached);
    probe.batch(0.4);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(probe.phase(), BenefitProbe::Phase::kCached);
    probe.batch(0.2);
  }
  EXPECT_EQ(probe.phase(), BenefitProbe::Phase::kDone);
  EXPECT_NEAR(probe.benefit(), 2, 1e-9);
  EXPECT_TRUE(probe.eligible());
  probe.begin_epoch(true);
  for (int i = 0; i < 15; ++i) probe.batch(1);
  EXPECT_NEAR(probe.benefit(), 2, 1e-9) << "an epoch that ended early finds out nothing";
}

TEST(BenefitEstimate, ComparesStorageWithSamplesThatWereInMemory) {
  BenefitEstimate estimate;
  uint64_t now = 1;
  const auto read = [&](unsigned samples, uint64_t each_ns, unsigned missed = 0) {
    for (unsigned i = 0; i < samples; ++i) {
      now += each_ns;
      estimate.begun(now, i >= missed);
    }
  };
  EXPECT_FALSE(estimate.benefit(100));
  read(2 * BenefitEstimate::kTogether + 1, 1000);
  EXPECT_FALSE(estimate.benefit(2000)) << "too few to go by";
  read(BenefitEstimate::kTogether, 1000);
  ASSERT_TRUE(estimate.benefit(2000));
  EXPECT_NEAR(*estimate.benefit(2000), 2, 1e-9);
  EXPECT_NEAR(*estimate.benefit(500), 1, 1e-9) << "storage is faster than the job";
  read(4 * BenefitEstimate::kTogether, 90'000, 4 * BenefitEstimate::kTogether);
  EXPECT_NEAR(*estimate.benefit(2000), 2, 1e-9) << "what is read from storage says nothing";
  estimate.pause();
  now += 1'000'000'000;  // a validation, say
  read(10 * BenefitEstimate::kTogether + 1, 500);
  EXPECT_NEAR(*estimate.benefit(2000), 4, 1e-9);
  read(2 * BenefitEstimate::kRemembered * BenefitEstimate::kTogether, 250);
  EXPECT_NEAR(*estimate.benefit(2000), 8, 1e-9) << "a job that became faster";
}

TEST(AdjustedImportance, ByHand) {
  // Percentile positions: 1/4, 2/4 and 4/4 of the four known ones; two equal ones are equally high.
  const std::vector<float> one{0.1F, 0.5F, 9, 9, kUnknownImportance};
  const auto relative = relative_importance(one);
  EXPECT_EQ(relative, (std::vector<float>{0.25F, 0.5F, 1, 1, 0}));
  const std::vector<float> two{30, 20, 10, kUnknownImportance};  // 1, 2/3, 1/3
  const std::vector<JobImportance> jobs{{2, one}, {3, two}};
  const auto adjusted = adjusted_importance(jobs);
  ASSERT_EQ(adjusted.size(), 5U);
  EXPECT_FLOAT_EQ(adjusted[0], 2 * 0.25F + 3);
  EXPECT_FLOAT_EQ(adjusted[1], 2 * 0.5F + 3 * 2.0F / 3);
  EXPECT_FLOAT_EQ(adjusted[2], 2 + 3 / 3.0F);
  EXPECT_FLOAT_EQ(adjusted[3], 2) << "known to one of them";
  EXPECT_FALSE(is_known(adjusted[4]));
  EXPECT_TRUE(adjusted_importance({}).empty());
}

TEST(CacheSplit, FollowsTheFrequenciesOfTheLastEpoch) {
  constexpr uint64_t kMiB = 1 << 20;
  CacheSplit split(100 * kMiB);
  EXPECT_EQ(split.h_bytes(), 90 * kMiB);
  for (int i = 0; i < 70; ++i) split.access(true);
  for (int i = 0; i < 30; ++i) split.access(false);
  EXPECT_EQ(split.h_bytes(), 90 * kMiB) << "not within an epoch";
  split.begin_epoch();
  EXPECT_EQ(split.h_bytes(), 70 * kMiB);
  EXPECT_EQ(split.l_bytes(), 30 * kMiB);
  split.access(true);
  split.begin_epoch();
  EXPECT_EQ(split.l_bytes(), kMiB) << "never less than a package";
  split.begin_epoch();
  EXPECT_EQ(split.l_bytes(), kMiB) << "an epoch without accesses changes nothing";
  split.set_capacity(kMiB);
  EXPECT_EQ(split.l_bytes(), kMiB / 2);
}

}  // namespace
}  // namespace sluice::policy
