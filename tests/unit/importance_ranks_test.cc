// Ranks of one job: what samples matter is known to all, epochs are each one's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "policy/importance/book.h"
#include "policy/util/random.h"
#include "tests/unit/selected.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kSamples = 1000;

using Requester = ImportanceBook::Requester;

// Two processes of one job that go through their halves of the dataset in turns, in sessions of
// their own or in one.
class Ranks : public testing::TestWithParam<bool> {
 protected:
  static constexpr DatasetId kDataset{7};
  static constexpr uint64_t kBytes = 8192;

  Ranks() {
    for (uint64_t sample = 0; sample < kSamples; ++sample) {  // one reports all
      EXPECT_TRUE(book_.report(requester(0), sample, static_cast<double>(sample)));
    }
  }

  static ImportanceOptions options() {
    ImportanceOptions options;
    options.substitution = ImportanceOptions::Substitution::kAny;
    options.selection.warm_up = 1;
    return options;
  }
  static Requester requester(uint32_t rank) {
    const SessionId session{GetParam() ? 1 : 1 + rank};
    return {50, session, 100 + rank, kDataset, kSamples};
  }
  // Whose turn a sample is differs from epoch to epoch.
  static bool trains(uint32_t rank, uint32_t epoch, SampleId sample) {
    return mixed(sample + epoch * kSamples) % 2 == rank;
  }

  void begin(uint32_t rank, uint32_t epoch) {
    std::vector<uint8_t> candidates(kSamples);
    for (SampleId i = 0; i < kSamples; ++i) candidates[i] = trains(rank, epoch, i) ? 1 : 0;
    const std::vector<bool> chosen =
        test::selected(&book_, requester(rank), epoch, options(), candidates, kRetained);
    order_[rank].clear();
    for (SampleId i = 0; i < kSamples; ++i) {
      EXPECT_TRUE(!chosen[i] || trains(rank, epoch, i));
      if (chosen[i]) order_[rank].push_back(i);
    }
    Random random(epoch);
    random.shuffle(&order_[rank]);
    asked_[rank] = 0;
    delivered_[rank].clear();
  }

  // Up to `most` positions.
  void deliver(uint32_t rank, uint32_t epoch, size_t most) {
    const size_t some = std::min(most, order_[rank].size() - asked_[rank]);
    EXPECT_TRUE(book_.follows(requester(rank), epoch, asked_[rank], some));
    for (size_t i = 0; i < some; ++i) {
      const SampleId requested = order_[rank][asked_[rank]++];
      const Delivery delivery =
          book_.deliver(requester(rank), requested, [](SampleId) { return kBytes; });
      EXPECT_TRUE(trains(rank, epoch, delivery.sample)) << "the other rank's";
      EXPECT_TRUE(delivered_[rank].insert(delivery.sample).second) << "twice in epoch " << epoch;
      substituted_ += delivery.kind == DeliveryKind::kSubstituted ? 1 : 0;
      hits_ += delivery.kind == DeliveryKind::kHHit ? 1 : 0;
      book_.on_read(requester(rank).session, requester(rank).process, kDataset, delivery.sample,
                    true);
    }
  }

  static constexpr uint64_t kRetained = kBytes * kSamples / 5;
  ImportanceBook book_;
  std::vector<SampleId> order_[2];
  size_t asked_[2] = {0, 0};
  std::set<SampleId> delivered_[2];
  uint64_t substituted_ = 0, hits_ = 0;
};

TEST_P(Ranks, InterleaveAndEachGetsItsOwn) {
  for (uint32_t epoch = 0; epoch < 12; ++epoch) {
    begin(0, epoch);
    deliver(0, epoch, 10);
    begin(1, epoch);
    for (uint32_t turn = 0; turn < 100; ++turn) deliver(turn % 2, epoch, 10 + turn);
    for (const uint32_t rank : {0U, 1U}) {
      EXPECT_EQ(asked_[rank], order_[rank].size());
      EXPECT_EQ(delivered_[rank].size(), order_[rank].size());
    }
    const size_t together = delivered_[0].size() + delivered_[1].size();
    // The values that one of them reported are known of both.
    if (epoch % 3 == 0) {
      EXPECT_EQ(together, kSamples);
    } else {
      EXPECT_NEAR(static_cast<double>(together), kSamples / 2.0, 100) << epoch;
    }
  }
  EXPECT_GT(substituted_, 50U);
  EXPECT_GT(hits_, 500U);
}

TEST_P(Ranks, QuestionsFollowEachItsOwnEpoch) {
  begin(0, 4);
  begin(1, 2);
  deliver(0, 4, 10);
  EXPECT_FALSE(book_.follows(requester(1), 4, 10, 1)) << "the other's epoch";
  EXPECT_FALSE(book_.follows(requester(1), 2, 10, 1)) << "the other's position";
  deliver(1, 2, 20);
  begin(1, 3);
  deliver(0, 4, 10);
  EXPECT_FALSE(book_.follows(requester(0), 3, 0, 1));
}

TEST_P(Ranks, OneThatEndsTakesItsOwnWithIt) {
  begin(0, 1);
  begin(1, 1);
  deliver(0, 1, 50);
  deliver(1, 1, 50);
  book_.remove_process(requester(0).session, requester(0).process);
  EXPECT_FALSE(book_.follows(requester(0), 1, 50, 1)) << "it is gone";
  deliver(1, 1, 50);
  EXPECT_EQ(book_.datasets(), 1U);
  uint64_t deliveries = 0;
  for (const ImportanceBook::View& view : book_.views()) {
    for (const uint64_t count : view.deliveries.by_kind) deliveries += count;
  }
  EXPECT_EQ(deliveries, 150U) << "what it got is counted still";
  begin(0, 2);  // its process comes again, say
  EXPECT_LT(order_[0].size(), 2 * kSamples / 5) << "what the job knows is not forgotten";
  deliver(1, 1, 10);
  if (GetParam()) return;
  book_.remove_session(requester(0).session);
  EXPECT_EQ(book_.views().at(0).known, kSamples) << "what it reported the other one has still";
  deliver(1, 1, 10);
  book_.remove_session(requester(1).session);
  EXPECT_TRUE(book_.views().empty());
  EXPECT_EQ(book_.datasets(), 0U);
}

TEST_P(Ranks, ReadersCountForTheirOwnRank) {
  begin(0, 0);
  begin(1, 0);
  const SampleId mine = order_[0].front();
  book_.deliver(requester(0), mine, [](SampleId) { return kBytes; });
  EXPECT_TRUE(book_.is_rank(requester(0).session, requester(0).process, kDataset));
  EXPECT_FALSE(book_.is_rank(requester(0).session, 999, kDataset));
  EXPECT_TRUE(
      book_.on_read(requester(1).session, requester(1).process, kDataset, mine, true).empty());
  EXPECT_FALSE(
      book_.on_read(requester(0).session, requester(0).process, kDataset, mine, true).empty());
}

TEST_P(Ranks, ChooseByTheFirstOnesSeed) {
  const auto chosen = [this](uint32_t rank, uint64_t seed) {
    ImportanceOptions chosen = options();
    chosen.selection.warm_up = chosen.selection.full_every = 0;
    chosen.selection.seed = seed;
    return test::selected(&book_, requester(rank), 0, chosen, std::vector<uint8_t>(kSamples, 1),
                          kRetained);
  };
  const std::vector<bool> first = chosen(0, 7);
  EXPECT_EQ(first, chosen(1, 8)) << "ranks must agree";
  EXPECT_LT(std::count(first.begin(), first.end(), true), kSamples);
}

INSTANTIATE_TEST_SUITE_P(InOneSession, Ranks, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(InTheirOwn, Ranks, testing::Values(false));

}  // namespace
}  // namespace sluice::policy
