// Every policy against the slow model of it, over random traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "policy/replacement/auto_policy.h"
#include "policy/replacement/belady.h"
#include "policy/replacement/table.h"
#include "tests/unit/policy_models.h"

namespace sluice::policy {
namespace {

constexpr SampleId kSamples = 40;
constexpr unsigned kSteps = 3000;
constexpr unsigned kSeeds = 25;

// One policy, and what is true of all of them.
class Checked {
 public:
  Checked(std::unique_ptr<Policy> policy, PolicyModel* model)
      : policy_(std::move(policy)), model_(model) {}

  void access(uint32_t job, SampleId sample, uint64_t bytes) {
    const bool retained_before = policy_->retained(sample);
    const bool same = retained_before && policy_->retained_bytes(sample) == bytes;
    const Decision decision = policy_->access(job, sample, bytes, &evicted_);
    EXPECT_EQ(decision == Decision::kHit, same);
    EXPECT_EQ(policy_->retained(sample), decision != Decision::kPass);
    EXPECT_TRUE(bytes <= policy_->capacity() || decision == Decision::kPass);
    for (const SampleId gone : evicted_) {
      if (gone == sample) {
        EXPECT_TRUE(retained_before && !same);
      } else {
        EXPECT_FALSE(policy_->retained(gone));
      }
    }
    EXPECT_TRUE(decision == Decision::kRetain ||
                evicted_.size() <= (retained_before && !same ? 1 : 0));
    if (model_ == nullptr) return whole();
    EXPECT_EQ(decision, model_->access(job, sample, bytes, &expected_));
    EXPECT_EQ(evicted_, expected_);
    whole();
  }
  void set_capacity(uint64_t bytes) {
    policy_->set_capacity(bytes, &evicted_);
    if (model_ != nullptr) {
      model_->set_capacity(bytes, &expected_);
      EXPECT_EQ(evicted_, expected_);
    }
    whole();
  }
  void drop(SampleId sample) {
    policy_->drop(sample);
    if (model_ != nullptr) model_->drop(sample);
    EXPECT_FALSE(policy_->retained(sample));
    whole();
  }
  template <typename What>
  void apply(What what) {
    what(policy_.get());
    if (model_ != nullptr) what(model_);
    whole();
  }

 private:
  void whole() {
    uint64_t bytes = 0;
    for (SampleId sample = 0; sample < 2 * kSamples; ++sample) {
      bytes += policy_->retained_bytes(sample);
      EXPECT_TRUE(model_ == nullptr || policy_->retained(sample) == model_->retained(sample))
          << sample;
    }
    EXPECT_EQ(policy_->used(), bytes);
    EXPECT_LE(policy_->used(), policy_->capacity());
  }

  const std::unique_ptr<Policy> policy_;
  PolicyModel* const model_;
  std::vector<SampleId> evicted_, expected_;
};

void random_trace(unsigned seed, Checked* checked) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t end) { return random() % end; };
  std::vector<uint64_t> sizes;
  for (SampleId sample = 0; sample < 2 * kSamples; ++sample) {
    sizes.push_back(below(20) == 0 ? 1000 : below(30));  // larger than any capacity, and empty ones
  }
  std::vector<SampleId> predicted;
  for (unsigned step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
    // Some samples have numbers above those that the policy was made for.
    SampleId sample = below(50) == 0 ? kSamples + below(kSamples) : below(kSamples);
    switch (below(60)) {
      case 0:
        checked->drop(sample);
        break;
      case 1:
        checked->set_capacity(below(400));
        break;
      case 2:
        sizes[sample] = below(40);
        break;
      case 3:
        checked->apply([job = below(3)](auto* policy) { policy->begin_epoch(job); });
        break;
      case 4:
        if (below(4) != 0) break;
        checked->apply([job = below(3)](auto* policy) { policy->end_job(job); });
        break;
      case 5:
      case 6: {
        std::vector<SampleId> order(below(60));
        for (SampleId& one : order) one = below(kSamples);
        predicted.insert(predicted.end(), order.begin(), order.end());
        checked->apply([&](auto* policy) { policy->append_order(order); });
        break;
      }
      case 7:
        if (below(4) != 0) break;
        predicted.clear();
        checked->apply([](auto* policy) { policy->clear_order(); });
        break;
      case 8:
      case 9:
        checked->apply([sample, value = static_cast<float>(below(10)) - 2](auto* policy) {
          policy->set_importance(sample, value);
        });
        break;
      case 10: {
        if (below(4) != 0) break;
        const auto predicted_at = std::find(predicted.begin(), predicted.end(), sample);
        if (predicted_at != predicted.end()) predicted.erase(predicted_at);
        checked->apply([sample](auto* policy) { policy->passed(sample); });
        break;
      }
      default: {
        // Most accesses come as foretold, though not always in their turn.
        if (!predicted.empty() && below(8) != 0) {
          const size_t turn = std::min<size_t>(below(4), predicted.size() - 1);
          sample = predicted[turn];
        }
        const auto predicted_at = std::find(predicted.begin(), predicted.end(), sample);
        if (predicted_at != predicted.end()) predicted.erase(predicted_at);
        checked->access(below(3), sample, sizes[sample]);
      }
    }
  }
}

void against_the_model(const std::string& name,
                       const std::function<std::unique_ptr<Policy>()>& make, bool with_model) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(name + ", seed " + std::to_string(seed));
    PolicyModel model(name, 200);
    Checked checked(make(), with_model ? &model : nullptr);
    random_trace(seed, &checked);
    if (::testing::Test::HasFailure()) return;
  }
}

class EveryPolicy : public ::testing::TestWithParam<PolicyInfo> {};

TEST_P(EveryPolicy, DecidesAsItsModel) {
  const std::string name = GetParam().name;
  // `auto` has no model of its own: the invariants hold for it, and what it chooses is below.
  against_the_model(
      name, [] { return GetParam().make(200, kSamples); }, name != "auto");
}

TEST_P(EveryPolicy, SmallsAndEmpties) {
  const std::unique_ptr<Policy> policy = GetParam().make(0, 0);
  std::vector<SampleId> evicted{7};
  EXPECT_EQ(policy->access(0, 5, 1, &evicted), Decision::kPass);
  EXPECT_TRUE(evicted.empty());
  EXPECT_EQ(policy->access(0, 6, 0, &evicted), Decision::kRetain);  // costs nothing
  EXPECT_EQ(policy->access(0, 6, 0, &evicted), Decision::kHit);
  policy->drop(1000);
  EXPECT_FALSE(policy->retained(1000));
  policy->set_capacity(UINT64_MAX, &evicted);
  EXPECT_EQ(policy->access(0, 5, UINT64_MAX - 1, &evicted), Decision::kRetain);
  policy->set_capacity(0, &evicted);
  EXPECT_NE(std::find(evicted.begin(), evicted.end(), 5), evicted.end());
  EXPECT_EQ(policy->used(), 0);
}

TEST_P(EveryPolicy, CostsAtMost40BytesASample) {
  constexpr uint32_t kMany = 1000000;
  const std::unique_ptr<Policy> policy = GetParam().make(uint64_t{kMany} * 10, kMany);
  std::vector<SampleId> order(kMany), evicted;
  for (SampleId sample = 0; sample < kMany; ++sample) order[sample] = sample;
  if (GetParam().wants_order) policy->append_order(order);
  policy->begin_epoch(0);
  for (const SampleId sample : order) policy->access(0, sample, 10, &evicted);
  EXPECT_LE(policy->footprint(), 40ULL * kMany);
  EXPECT_GE(policy->footprint(), 8ULL * kMany);
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy,
                         ::testing::ValuesIn(policies().begin(), policies().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Belady, NumbersThatStartAnewChangeNothing) {
  against_the_model(
      "belady", [] { return std::make_unique<Belady>(200, kSamples, 64); }, true);
}

TEST(Table, NamesAreFoundAndOthersAreNot) {
  for (const PolicyInfo& info : policies()) EXPECT_EQ(find_policy(info.name)->name, info.name);
  EXPECT_EQ(find_policy("lr"), nullptr);
  EXPECT_EQ(find_policy(""), nullptr);
}

}  // namespace
}  // namespace sluice::policy
