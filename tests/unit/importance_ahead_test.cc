// What the epoch after the present one will select, and that it is retained.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "policy/importance/choice.h"
#include "policy/importance/h_cache.h"
#include "policy/importance/icache_system.h"
#include "policy/importance/selector.h"
#include "policy/importance/values.h"
#include "tests/unit/importance_data.h"

namespace sluice::policy {
namespace {

constexpr uint32_t kSamples = 4000;
constexpr uint32_t kSelects = 5, kFetchesAll = 7;  // epochs, with the settings as they are

class Ahead : public ::testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<Selector> make() { return find_selector(GetParam())->make({}); }

  static EpochChoice chosen(uint32_t epoch, std::vector<float> values,
                            std::vector<uint8_t> candidates = {}) {
    EpochChoice choice;
    choice.selector = make();
    choice.epoch = epoch;
    choice.looks_ahead = true;
    choice.values = std::move(values);
    choice.candidates = std::move(candidates);
    choose(&choice);
    return choice;
  }
};

std::vector<HListEntry> coming_of(const EpochChoice& choice) {
  std::vector<HListEntry> entries;
  for (SampleId sample = 0; sample < choice.coming_list->samples(); ++sample) {
    if (!choice.coming_list->contains(sample)) continue;
    entries.push_back({sample, choice.coming_list->importance(sample)});
  }
  return entries;
}

TEST_P(Ahead, AMarginSaysWhatWillBeSelected) {
  const auto values = random_values(kSamples, 1);
  const auto selected = make()->select(kSelects, values);
  const auto outlook = make()->outlook(kSelects, values);
  uint32_t otherwise = 0;
  for (uint32_t sample = 0; sample < kSamples; ++sample) {
    const float margin = outlook->margin(sample, values[sample]);
    otherwise += (margin > 0) != selected[sample] ? 1 : 0;
    EXPECT_LE(std::abs(margin), 1);
    EXPECT_LE(outlook->margin(sample, values[sample] / 2), margin);
    EXPECT_FALSE(std::isnan(outlook->margin(sample, kUnknownImportance)));
  }
  EXPECT_LT(otherwise, kSamples / 50) << "percentiles are estimates";
}

TEST_P(Ahead, WhatIsDrawnForASampleDoesNotDependOnTheOthers) {
  const auto values = random_values(kSamples, 1);
  std::vector<uint8_t> half(kSamples);
  for (uint32_t sample = 0; sample < kSamples; ++sample) half[sample] = sample % 2;
  const auto all = make()->select(kSelects, values), some = make()->select(kSelects, values, half);
  uint32_t otherwise = 0;
  for (uint32_t sample = 0; sample < kSamples; ++sample) {
    EXPECT_FALSE(half[sample] == 0 && some[sample]);
    otherwise += half[sample] != 0 && some[sample] != all[sample] ? 1 : 0;
  }
  EXPECT_LT(otherwise, kSamples / 20) << "percentiles are estimates";
}

TEST_P(Ahead, TheNextEpochsHSamplesAreKnownButForHowValuesChange) {
  const auto values = random_values(kSamples, 2);
  for (const uint32_t epoch : {kSelects, kFetchesAll - 1, kFetchesAll}) {
    const EpochChoice now = chosen(epoch, values), next = chosen(epoch + 1, values);
    std::set<uint64_t> coming, top;
    for (const HListEntry& entry : coming_of(now)) coming.insert(entry.sample);
    for (const HListEntry& entry : next.top) top.insert(entry.sample);
    uint32_t both = 0;
    for (const uint64_t sample : coming) both += top.count(sample) != 0 ? 1 : 0;
    EXPECT_GT(both, top.size() * 97 / 100) << epoch;
    EXPECT_LT(coming.size(), top.size() * 103 / 100) << epoch;
    for (const HListEntry& entry : coming_of(now)) {
      const auto sample = static_cast<SampleId>(entry.sample);
      EXPECT_EQ(now.coming->importance(sample, values[sample]), entry.importance);
      EXPECT_EQ(now.coming_list->importance(sample), entry.importance);
      EXPECT_TRUE(epoch == kFetchesAll - 1 || entry.importance > 0);
    }
    EXPECT_EQ(now.coming->importance(coming_of(now).front().sample, -1), std::nullopt);
  }
}

TEST_P(Ahead, WhatIsUnknownYetIsJudgedByWhatIsDrawn) {
  const EpochChoice last = chosen(kSelects - 1, std::vector<float>(kSamples, kUnknownImportance));
  const auto next = make()->select(kSelects, random_values(kSamples, 3));
  std::vector<HListEntry> coming = coming_of(last);
  ASSERT_GT(coming.size(), kSamples / 4);
  std::ranges::sort(coming,
                    [](const auto& a, const auto& b) { return a.importance > b.importance; });
  coming.resize(kSamples / 5);
  uint32_t selected = 0;
  for (const HListEntry& entry : coming) selected += next[entry.sample] ? 1 : 0;
  EXPECT_GT(selected, coming.size() * 3 / 4) << "half of all are";
}

TEST_P(Ahead, WhatIsNoCandidateIsNotExpected) {
  std::vector<uint8_t> half(kSamples);
  for (uint32_t sample = 0; sample < kSamples; ++sample) half[sample] = sample % 2;
  for (const uint32_t epoch : {0U, kSelects, kFetchesAll - 1}) {
    const EpochChoice choice = chosen(epoch, random_values(kSamples, 4), half);
    EXPECT_EQ(choice.count_offered, kSamples / 2);
    ASSERT_FALSE(coming_of(choice).empty());
    for (const HListEntry& entry : coming_of(choice)) EXPECT_EQ(entry.sample % 2, 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(Selectors, Ahead, ::testing::Values("loss", "share"));

std::shared_ptr<HList> list_of(const std::vector<float>& values) {
  std::vector<HListEntry> entries;
  for (size_t sample = 0; sample < values.size(); ++sample)
    entries.push_back({sample, values[sample]});
  return std::make_shared<HList>(static_cast<uint32_t>(values.size()), entries);
}

TEST(HCache, WhatWillNotBeSelectedIsEvictedOnceThatIsKnown) {
  HCache cache(2, 5);
  std::vector<SampleId> evicted;
  cache.set_list(list_of({5, 4, 3, 2, 1}), HCache::Awaited());
  for (const SampleId sample : {0U, 1U}) cache.access(0, sample, 1, &evicted);
  EXPECT_EQ(cache.access(0, 2, 1, &evicted), Decision::kPass);
  cache.revise(0, kUnknownImportance);
  EXPECT_EQ(cache.list().size(), 4U);
  EXPECT_EQ(cache.access(0, 2, 1, &evicted), Decision::kRetain);
  EXPECT_EQ(evicted, std::vector<SampleId>{0});
  cache.revise(4, 10);  // not retained: it will be, when it is read
  EXPECT_EQ(cache.access(0, 4, 1, &evicted), Decision::kRetain);
  EXPECT_EQ(evicted, std::vector<SampleId>{2});
  cache.revise(9, 1);  // there is none
}

TEST(HCache, WhatIsAwaitedIsSparedThoughItIsRevised) {
  HCache cache(2, 4);
  std::vector<SampleId> evicted;
  const HCache::Awaited awaited{true, true};
  const auto list = list_of({4, 3, 2, 1});
  cache.set_list(list, awaited);
  for (const SampleId sample : {0U, 1U}) cache.access(0, sample, 1, &evicted);
  cache.set_list(list_of({4, 3, 2, 1}), awaited);
  EXPECT_EQ(cache.access(0, 3, 1, &evicted), Decision::kPass);
  cache.revise(0, kUnknownImportance);
  EXPECT_EQ(cache.access(0, 2, 1, &evicted), Decision::kPass) << "both are still requested";
  EXPECT_EQ(cache.access(0, 0, 1, &evicted), Decision::kHit);
  EXPECT_EQ(cache.access(0, 2, 1, &evicted), Decision::kRetain);
  EXPECT_EQ(evicted, std::vector<SampleId>{0});
}

// Of ranks each begins in its own time, and the samples of all are in one list.
TEST(LooksAhead, ARankThatBeginsChangesNothingOfTheOthers) {
  constexpr uint32_t kAll = 100;
  SystemSettings settings = {.capacity = kAll, .samples = kAll};
  settings.reads_packages = false;
  settings.looks_ahead = true;
  ICacheSystem system(settings, Substitute::kNever, false);
  const auto begin = [&](uint32_t rank, uint32_t epoch) {
    EpochChoice choice;
    choice.selector = find_selector("loss")->make({.warm_up = 0, .full_every = 0});
    choice.epoch = epoch;
    choice.looks_ahead = true;
    choice.values = random_values(kAll, 7);
    choice.candidates.resize(kAll);
    for (uint32_t sample = 0; sample < kAll; ++sample)
      choice.candidates[sample] = sample % 2 == rank;
    choose(&choice);
    system.begin_chosen(rank, &choice);
    return choice;
  };
  for (const uint32_t rank : {0U, 1U}) system.join(rank, {}, false, 1);
  const EpochChoice first = begin(0, 0);
  const HCache& cache = system.cache().h_cache();
  SampleId requested = 0, revised = 0;
  while (!first.chosen[requested]) ++requested;
  while (!cache.own_list()->contains(revised)) ++revised;
  ASSERT_TRUE((*cache.awaited())[requested]);
  system.request(0, requested, 1);
  EXPECT_FALSE((*cache.awaited())[requested]);
  system.observe(0, revised, -1);
  EXPECT_FALSE(cache.own_list()->contains(revised));
  system.observe(0, 1, 100);
  EXPECT_FALSE(cache.own_list()->contains(1)) << "it is no candidate of that rank";
  const EpochChoice second = begin(1, 0);
  EXPECT_FALSE(cache.own_list()->contains(revised));
  for (SampleId sample = 0; sample < kAll; ++sample) {
    const bool is_chosen = first.chosen[sample] || second.chosen[sample];
    EXPECT_EQ((*cache.awaited())[sample], is_chosen && sample != requested) << sample;
  }
  system.end_job(1);
  for (SampleId sample = 1; sample < kAll; sample += 2) EXPECT_FALSE((*cache.awaited())[sample]);
  EXPECT_NE(cache.own_list(), nullptr);
}

// While no value is known, those that are observed are of one scale with the others.
TEST(LooksAhead, FirstLossesDoNotOutweighWhatIsDrawn) {
  const std::vector<float> unknown(kSamples, kUnknownImportance);
  for (const SelectorInfo& info : selectors()) {
    const auto outlook = info.make({})->outlook(kSelects, unknown);
    for (const uint32_t sample : {0U, 1U, 2U}) {
      EXPECT_EQ(outlook->margin(sample, 3), outlook->margin(sample, kUnknownImportance));
    }
  }
}

// Hits of an epoch for each sample that fits the memory, later epochs' mean. With each training a
// sample's loss changes.
double hits(bool looks_ahead) {
  constexpr uint32_t kFit = kSamples / 5, kEpochs = 15, kFrom = 6;
  SystemSettings settings = {.capacity = kFit, .samples = kSamples};
  settings.reads_packages = false;
  settings.fills = true;
  settings.looks_ahead = looks_ahead;
  ICacheSystem system(settings, Substitute::kNever, false);
  std::vector<float> values = random_values(kSamples, 5);
  Random random(6);
  uint64_t found = 0;
  for (uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<bool> chosen = system.begin_epoch(0, epoch, values);
    std::vector<uint32_t> order;
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      if (chosen[sample]) order.push_back(sample);
    }
    random.shuffle(&order);
    for (const uint32_t sample : order) {
      const Delivery delivery = system.request(0, sample, 1);
      found += epoch >= kFrom && delivery.kind != DeliveryKind::kMiss ? 1 : 0;
      values[sample] = static_cast<float>(-std::log(random.unit()) * 0.5 + 0.5 * values[sample]);
      system.observe(0, sample, values[sample]);
    }
  }
  return static_cast<double>(found) / (kEpochs - kFrom) / kFit;
}

TEST(LooksAhead, NearlyAllThatIsRetainedIsSelected) {
  EXPECT_GT(hits(true), 0.95);
  EXPECT_LT(hits(false), 0.85);
}

}  // namespace
}  // namespace sluice::policy
