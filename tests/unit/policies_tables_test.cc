// What is known of the policies by theory, and what `auto` makes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "policy/replacement/auto_policy.h"
#include "policy/replacement/table.h"

namespace sluice::policy {
namespace {

constexpr uint32_t kSamples = 20000;

std::vector<SampleId> shuffled(uint32_t samples, std::mt19937* random) {
  std::vector<SampleId> order(samples);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), *random);
  return order;
}

// Hits of each epoch of one job that reshuffles, samples of one byte. `ahead` epochs after the
// present one are known.
std::vector<uint64_t> reshuffle(Policy* policy, unsigned epochs, unsigned ahead) {
  std::mt19937 random(11);
  std::vector<std::vector<SampleId>> orders(epochs);
  for (auto& order : orders) order = shuffled(kSamples, &random);
  std::vector<uint64_t> hits(epochs);
  std::vector<SampleId> evicted;
  unsigned known = 0;
  for (unsigned epoch = 0; epoch < epochs; ++epoch) {
    for (; known < epochs && known <= epoch + ahead; ++known) policy->append_order(orders[known]);
    policy->begin_epoch(0);
    for (const SampleId sample : orders[epoch]) {
      hits[epoch] += policy->access(0, sample, 1, &evicted) == Decision::kHit ? 1 : 0;
    }
  }
  return hits;
}

class Reshuffled : public ::testing::TestWithParam<unsigned> {
 protected:
  uint64_t capacity() const { return uint64_t{kSamples} * GetParam() / 100; }
  std::unique_ptr<Policy> make(const char* name) const {
    return find_policy(name)->make(capacity(), kSamples);
  }
};

// iCache, Figure 16, "Default": 0.02, 0.09, 0.23, 0.48.
TEST_P(Reshuffled, LruHitsWhatTheFormulaSays) {
  const double c = GetParam() / 100.0;
  const auto hits = reshuffle(make("lru").get(), 6, 0);
  EXPECT_EQ(hits[0], 0);
  for (size_t epoch = 1; epoch < hits.size(); ++epoch) {
    EXPECT_NEAR(static_cast<double>(hits[epoch]) / kSamples, c + (1 - c) * std::log(1 - c), 0.012);
  }
}

// No policy can do better than MIN, and MIN's hits are exactly the capacity: so are those of all
// that never give up what a later epoch is sure to want.
TEST_P(Reshuffled, MinHitsTheCapacityAndSoDoTheOthersThatRetain) {
  for (const char* name : {"belady", "auto"}) {
    for (const unsigned ahead : {1U, 2U}) {
      const auto hits = reshuffle(make(name).get(), 5, ahead);
      // Nothing is known of an epoch after the last: it is the fifth that counts.
      for (size_t epoch = 1; epoch < hits.size(); ++epoch) EXPECT_EQ(hits[epoch], capacity());
    }
  }
  for (const char* name : {"minio", "quiver", "shade"}) {
    const auto hits = reshuffle(make(name).get(), 5, 0);
    for (size_t epoch = 1; epoch < hits.size(); ++epoch) EXPECT_EQ(hits[epoch], capacity()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Share, Reshuffled, ::testing::Values(20, 40, 60, 80));

// The most hits that any choice of what to retain can get, by trying all of them.
unsigned most_hits(const std::vector<SampleId>& trace, unsigned samples, unsigned capacity) {
  std::vector<int> best(1U << samples, -1);
  best[0] = 0;
  for (const SampleId sample : trace) {
    std::vector<int> next(best.size(), -1);
    for (unsigned set = 0; set < best.size(); ++set) {
      if (best[set] < 0) continue;
      const int hits = best[set] + static_cast<int>(set >> sample & 1);
      const unsigned with = set | 1U << sample;
      for (unsigned after = with;; after = (after - 1) & with) {
        if (std::popcount(after) <= static_cast<int>(capacity)) {
          next[after] = std::max(next[after], hits);
        }
        if (after == 0) break;
      }
    }
    best = next;
  }
  return static_cast<unsigned>(*std::max_element(best.begin(), best.end()));
}

TEST(Belady, NothingHitsMoreOftenThanMin) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const unsigned capacity = 1 + seed % 4;
    std::vector<SampleId> trace(30);
    for (SampleId& sample : trace) sample = random() % 6;
    const auto policy = find_policy("belady")->make(capacity, 6);
    policy->append_order(trace);
    unsigned hits = 0;
    std::vector<SampleId> evicted;
    for (const SampleId sample : trace) {
      hits += policy->access(0, sample, 1, &evicted) == Decision::kHit ? 1 : 0;
    }
    EXPECT_EQ(hits, most_hits(trace, 6, capacity));
  }
}

// Two jobs over one dataset, the second half an epoch behind.
TEST(Quiver, HoldsForTheOtherJobWhatOneHasHad) {
  auto fetched = [](const char* name) {
    std::mt19937 random(5);
    const auto policy = find_policy(name)->make(kSamples / 5, kSamples);
    std::vector<SampleId> orders[2] = {shuffled(kSamples, &random), shuffled(kSamples, &random)};
    uint64_t misses = 0;
    std::vector<SampleId> evicted;
    for (uint64_t turn = 0; turn < 5ULL * kSamples; ++turn) {
      for (uint32_t job = 0; job < 2; ++job) {
        const uint64_t place = (turn + job * kSamples / 2) % kSamples;
        if (place == 0 || turn == 0) {
          orders[job] = shuffled(kSamples, &random);
          policy->begin_epoch(job);
        }
        const Decision decision = policy->access(job, orders[job][place], 1, &evicted);
        misses += decision == Decision::kHit ? 0 : 1;
      }
    }
    return misses;
  };
  EXPECT_LT(static_cast<double>(fetched("quiver")), 0.95 * static_cast<double>(fetched("minio")));
}

TEST(Shade, RetainsTheImportant) {
  const auto policy = find_policy("shade")->make(10, 100);
  std::vector<SampleId> evicted;
  for (SampleId sample = 0; sample < 100; ++sample) {
    policy->set_importance(sample, static_cast<float>((sample * 37) % 100));
  }
  for (SampleId sample = 0; sample < 100; ++sample) policy->access(0, sample, 1, &evicted);
  for (SampleId sample = 0; sample < 100; ++sample) {
    EXPECT_EQ(policy->retained(sample), (sample * 37) % 100 >= 90) << sample;
  }
}

// Two jobs in turn, each in an order of its own, of which no more is known than the present epoch.
TEST(Needed, WhatOneJobHasReadStaysForTheOther) {
  const auto hits_of = [](const char* name) {
    constexpr SampleId kCount = 1000;
    const auto policy = find_policy(name)->make(kCount / 5, kCount);
    std::mt19937 random(11);
    std::vector<SampleId> evicted;
    for (SampleId sample = 0; sample < kCount; ++sample) {
      policy->set_importance(sample, static_cast<float>(sample * 37 % kCount));
    }
    unsigned hits = 0;
    for (unsigned epoch = 0; epoch < 4; ++epoch) {
      const auto one = shuffled(kCount, &random), other = shuffled(kCount, &random);
      std::vector<SampleId> all;
      for (size_t at = 0; at < kCount; ++at) all.insert(all.end(), {one[at], other[at]});
      policy->append_order(all);
      for (const SampleId sample : all) {
        hits += policy->access(0, sample, 1, &evicted) == Decision::kHit ? 1 : 0;
      }
    }
    unsigned important = 0;
    for (SampleId sample = 0; sample < kCount; ++sample) {
      const bool matters = sample * 37 % kCount >= kCount * 4 / 5;
      important += matters && policy->retained(sample) ? 1 : 0;
    }
    // By chance it would be a twenty-fifth.
    EXPECT_GT(important, kCount / 10)
        << name << ": what is predicted no more is retained by importance";
    return hits;
  };
  EXPECT_GT(hits_of("needed"), hits_of("shade") * 3 / 2);
}

TEST(Needed, ImportancesAreInOrderWhateverTheirSign) {
  const std::vector<float> worth{-1e30F, -5, -0.5F,    -1e-30F, 0,    1e-30F,
                                 0.5F,   1,  1.00001F, 7,       1e30F};
  for (size_t capacity = 1; capacity < worth.size(); ++capacity) {
    const auto policy = find_policy("needed")->make(capacity, 0);
    std::vector<SampleId> evicted;
    for (SampleId sample = 0; sample < worth.size(); ++sample) {
      policy->set_importance(sample, worth[sample]);
      policy->access(0, sample, 1, &evicted);
      EXPECT_EQ(policy->importance(sample), worth[sample]);
      EXPECT_EQ(policy->retained(sample), true);
    }
    for (SampleId sample = 0; sample < worth.size(); ++sample) {
      EXPECT_EQ(policy->retained(sample), sample + capacity >= worth.size()) << sample;
    }
    policy->set_importance(0, 1e31F);
    EXPECT_EQ(policy->access(0, 0, 1, &evicted), Decision::kRetain);
  }
}

TEST(Auto, StaysWithMinioUnderAReshuffle) {
  AutoPolicy policy(kSamples / 5, kSamples);
  std::mt19937 random(3);
  std::vector<SampleId> evicted;
  for (unsigned epoch = 0; epoch < 6; ++epoch) {
    for (const SampleId sample : shuffled(kSamples, &random)) policy.access(0, sample, 1, &evicted);
    EXPECT_STREQ(policy.chosen(), "minio");
  }
}

// A window of samples that are read again and again, and wanders: recency is all that counts.
TEST(Auto, FindsOutThatAnotherIsBetter) {
  AutoPolicy policy(2000, kSamples);
  const auto minio = find_policy("minio")->make(2000, kSamples);
  std::mt19937 random(3);
  std::vector<SampleId> evicted;
  uint64_t hits = 0, minio_hits = 0;
  for (uint32_t step = 0; step < 30 * kSamples; ++step) {
    const SampleId sample = (step / 20 + random() % 1500) % kSamples;
    hits += policy.access(0, sample, 1, &evicted) == Decision::kHit ? 1 : 0;
    minio_hits += minio->access(0, sample, 1, &evicted) == Decision::kHit ? 1 : 0;
  }
  EXPECT_STREQ(policy.chosen(), "lru");
  EXPECT_GT(hits, 2 * minio_hits);
}

TEST(Auto, RetainsAllWhenItsRuleChanges) {
  AutoPolicy policy(50, 100);
  std::vector<SampleId> evicted, order(100);
  std::iota(order.begin(), order.end(), 0);
  for (const SampleId sample : order) policy.access(0, sample, 1, &evicted);
  EXPECT_EQ(policy.used(), 50);
  policy.append_order(order);
  EXPECT_STREQ(policy.chosen(), "belady");
  EXPECT_EQ(policy.used(), 50);
  policy.clear_order();
  EXPECT_EQ(policy.access(0, 0, 1, &evicted), Decision::kHit);
  EXPECT_STREQ(policy.chosen(), "minio");
  EXPECT_EQ(policy.used(), 50);
}

// What was only offered was not passed on to the next policy: it was retained by none, and stayed.
TEST(Auto, RetainsWhatWasOfferedWhenItsRuleChanges) {
  AutoPolicy policy(50, 100);
  std::vector<SampleId> evicted, order(100);
  std::iota(order.begin(), order.end(), 0);
  policy.append_order(order);
  for (SampleId sample = 60; sample < 70; ++sample) policy.offer(sample, 1, &evicted);
  EXPECT_EQ(policy.used(), 10);
  policy.clear_order();
  policy.access(0, 0, 1, &evicted);
  EXPECT_STREQ(policy.chosen(), "minio");
  EXPECT_EQ(policy.used(), 11);
}

// What lies first in the file is retained, in whatever order it is read, and a change of place
// counts.
TEST(FileOrder, RetainsTheBeginningOfTheFile) {
  const auto policy = policy_info(PolicyKind::kFileOrder).make(10, 100);
  std::vector<SampleId> order(100), evicted;
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 draw(3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::shuffle(order.begin(), order.end(), draw);
    for (const SampleId sample : order) {
      policy->set_page(sample, (1ULL << 25) + 99 - sample);  // the last samples lie first
      policy->access(1, sample, 1, &evicted);
    }
    for (SampleId sample = 0; sample < 100; ++sample) {
      EXPECT_EQ(policy->retained(sample), sample >= 90) << sample;
    }
  }
  policy->set_page(95, 1ULL << 26);  // behind all others
  policy->access(1, 50, 1, &evicted);
  EXPECT_EQ(evicted, std::vector<SampleId>{95});
  EXPECT_EQ(find_policy("file-order"), nullptr);  // not for users
}

}  // namespace
}  // namespace sluice::policy
