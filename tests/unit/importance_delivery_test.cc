// Which sample an epoch reads for each that it requests: hits, substitutes, and what is retained.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/importance_book_data.h"

namespace sluice::policy {
namespace {

// Epochs of a job whose samples are of one size, a fifth of which fits.
struct Job {
  explicit Job(const ImportanceOptions& asked, ImportanceBook* shared = nullptr, uint32_t job = 1)
      : requester(of(job, 7)), options(asked), book(shared != nullptr ? *shared : own) {
    report_all(&book, job, 7);
  }

  // Which sample is read for which, in the order of the epoch.
  std::vector<std::pair<SampleId, Delivery>> epoch(uint32_t number,
                                                   std::span<const uint8_t> candidates = {},
                                                   bool reads = true) {
    const std::vector<bool> chosen =
        test::selected(&book, requester, number, options, {candidates.begin(), candidates.end()},
                       kBytes * kSamples / 5);
    std::vector<SampleId> order;
    for (SampleId sample = 0; sample < kSamples; ++sample) {
      if (chosen[sample]) order.push_back(sample);
    }
    Random random(number);
    random.shuffle(&order);
    std::vector<std::pair<SampleId, Delivery>> deliveries;
    deliveries.reserve(order.size());
    for (const SampleId sample : order) {
      deliveries.emplace_back(sample,
                              book.deliver(requester, sample, [](SampleId) { return kBytes; }));
      if (reads) read(deliveries.back().second.sample);
    }
    return deliveries;
  }

  void read(SampleId sample) {
    book.on_read(requester.session, requester.process, requester.dataset, sample, true);
  }

  static constexpr uint64_t kBytes = 8192;
  const Requester requester;
  const ImportanceOptions options;
  ImportanceBook own;
  ImportanceBook& book;
};

ImportanceOptions asking_for(ImportanceOptions::Substitution substitution) {
  ImportanceOptions options;
  options.substitution = substitution;
  options.selection.warm_up = 1;
  return options;
}

TEST(ImportanceBook, AnEpochReadsNoSampleTwiceAndSubstitutesAreBounded) {
  Job job(asking_for(ImportanceOptions::Substitution::kAny));
  for (uint32_t epoch = 0; epoch < 20; ++epoch) {
    std::set<SampleId> delivered;
    uint64_t substituted = 0;
    const auto deliveries = job.epoch(epoch);
    for (const auto& [asked, delivery] : deliveries) {
      EXPECT_TRUE(delivered.insert(delivery.sample).second) << "epoch " << epoch;
      substituted += delivery.kind == DeliveryKind::kSubstituted ? 1 : 0;
    }
    EXPECT_LE(substituted, deliveries.size() * 12 / 100 + 1);
  }
  const ImportanceBook::View view = job.book.views()[0];
  EXPECT_GT(view.deliveries.of(DeliveryKind::kSubstituted), 200U);
  EXPECT_GT(view.deliveries.of(DeliveryKind::kHHit), 1000U);
}

TEST(ImportanceBook, WhatIsNotTheJobsIsNoSubstitute) {
  Job job(asking_for(ImportanceOptions::Substitution::kAny));
  for (uint32_t epoch = 0; epoch < 4; ++epoch)
    job.epoch(epoch);  // samples of both halves are retained
  std::vector<uint8_t> even(kSamples);
  for (size_t i = 0; i < kSamples; i += 2) even[i] = 1;
  for (uint32_t epoch = 4; epoch < 9; ++epoch) {
    for (const auto& [asked, delivery] : job.epoch(epoch, even)) {
      EXPECT_EQ(delivery.sample % 2, 0U) << "a validation's, say";
    }
  }
}

TEST(ImportanceBook, OfOneClassOnlyWhatIsKnownToBe) {
  Job job(asking_for(ImportanceOptions::Substitution::kSameLabel));
  uint64_t substituted = 0;
  for (uint32_t epoch = 0; epoch < 12; ++epoch) {
    for (const auto& [asked, delivery] : job.epoch(epoch)) {
      EXPECT_TRUE(epoch >= 4 || delivery.sample == asked) << "no label is known yet";
      EXPECT_EQ(delivery.sample % 3, asked % 3);
      substituted += delivery.kind == DeliveryKind::kSubstituted ? 1 : 0;
    }
    if (epoch == 3)
      report_all(&job.book, 1, 7);  // those before the first selection were not retained
  }
  EXPECT_GT(substituted, 100U);
}

TEST(ImportanceBook, EachJobOfADatasetGetsItsOwnSubstitution) {
  ImportanceBook book;
  using Substitution = ImportanceOptions::Substitution;
  Job any(asking_for(Substitution::kAny), &book, 1);
  Job never(asking_for(Substitution::kNever), &book, 2);
  Job of_class(asking_for(Substitution::kSameLabel), &book, 3);
  uint64_t substituted[2] = {0, 0};
  for (uint32_t epoch = 0; epoch < 12; ++epoch) {
    for (const auto& [asked, delivery] : any.epoch(epoch)) {
      substituted[0] += delivery.kind == DeliveryKind::kSubstituted ? 1 : 0;
    }
    for (const auto& [asked, delivery] : never.epoch(epoch)) {
      EXPECT_EQ(delivery.sample, asked) << "another job's choice";
    }
    for (const auto& [asked, delivery] : of_class.epoch(epoch)) {
      EXPECT_EQ(delivery.sample % 3, asked % 3) << "another job's choice";
      substituted[1] += delivery.kind == DeliveryKind::kSubstituted ? 1 : 0;
    }
    report_all(&book, 3, 7);
  }
  EXPECT_GT(substituted[0], 50U);
  EXPECT_GT(substituted[1], 50U);
  book.remove_session(SessionId{1});
  book.remove_session(SessionId{3});
  for (const auto& [asked, delivery] : never.epoch(12)) EXPECT_EQ(delivery.sample, asked);
  book.remove_session(SessionId{2});
  EXPECT_TRUE(book.views().empty());
  EXPECT_EQ(book.datasets(), 0U);
}

TEST(ImportanceBook, WhatWasDecidedAndNeverReadIsNotInMemory) {
  Job job(asking_for(ImportanceOptions::Substitution::kNever));
  job.epoch(0, {}, false);
  for (uint32_t epoch = 1; epoch < 6; ++epoch) {
    for (const auto& [asked, delivery] : job.epoch(epoch, {}, false)) {  // it breaks off
      EXPECT_EQ(delivery.kind, DeliveryKind::kMiss) << "epoch " << epoch;
    }
  }
}

// Another job's order had pushed them out, and they were substitutes, or were reported as hits.
TEST(ImportanceBook, WhatWasReadAndIsNotInMemoryIsNoHit) {
  ImportanceBook book;
  report_all(&book, 1, 7);
  ImportanceOptions options;
  options.substitution = ImportanceOptions::Substitution::kAny;
  const Requester requester = of(1, 7);
  const auto bytes = [](SampleId) { return uint64_t{4096}; };
  const auto epoch = [&](uint32_t number, SampleId end) {
    const auto chosen = test::selected(&book, requester, number, options, {}, 4096 * kSamples / 2);
    std::array<uint64_t, kDeliveryKinds> kind{};
    for (SampleId sample = 0; sample < end; ++sample) {
      if (!chosen[sample]) continue;
      const Delivery delivery = book.deliver(requester, sample, bytes);
      ++kind[static_cast<size_t>(delivery.kind)];
      if (sample % 2 == 0)
        book.on_read(requester.session, requester.process, DatasetId{7}, delivery.sample, true);
    }
    return kind;
  };
  const auto hits = [](const std::array<uint64_t, kDeliveryKinds>& kind) {
    return kind[static_cast<size_t>(DeliveryKind::kHHit)] +
           kind[static_cast<size_t>(DeliveryKind::kLExact)] +
           kind[static_cast<size_t>(DeliveryKind::kSubstituted)];
  };
  for (const uint32_t number : {5U, 6U, 7U}) epoch(number, kSamples);
  book.drop_absent(DatasetId{8}, [](SampleId) { return false; });  // another dataset
  EXPECT_GT(hits(epoch(8, kSamples)), 100U);
  const auto counted_on = [&] {
    std::set<SampleId> all;
    book.drop_absent(DatasetId{7}, [&](SampleId sample) { return all.insert(sample), true; });
    return all.size();
  };
  const size_t before = counted_on();
  EXPECT_EQ(counted_on(), before) << "all are there: nothing changes";
  EXPECT_GT(hits(epoch(9, kSamples)), 100U);
  book.drop_absent(DatasetId{7}, [&](SampleId) { return false; });
  // What was decided and not read yet is no loss.
  EXPECT_GT(counted_on(), 0U);
  EXPECT_LT(counted_on(), before);
  test::selected(&book, requester, 10, options, {},
                 4096 * kSamples / 2);  // nor is anything awaited now
  book.drop_absent(DatasetId{7}, [&](SampleId) { return false; });
  EXPECT_EQ(counted_on(), 0U);
  const auto chosen = test::selected(&book, requester, 11, options, {}, 4096 * kSamples / 2);
  const auto first = std::find(chosen.begin(), chosen.end(), true) - chosen.begin();
  EXPECT_EQ(book.deliver(requester, static_cast<SampleId>(first), bytes).kind, DeliveryKind::kMiss);
}

TEST(ImportanceBook, ASubstituteIsNotReadAgainWhereNothingIsRetainedAnyMore) {
  Job job(asking_for(ImportanceOptions::Substitution::kAny));
  for (uint32_t epoch = 0; epoch < 4; ++epoch) job.epoch(epoch);
  const std::vector<bool> chosen =
      test::selected(&job.book, job.requester, 4, job.options, {}, Job::kBytes * kSamples / 5);
  std::set<SampleId> delivered;
  uint32_t requests = 0;
  for (SampleId sample = 0; sample < kSamples; ++sample) {
    if (!chosen[sample]) continue;
    // From some request on the memory is taken.
    const uint64_t bytes = ++requests < 200 ? Job::kBytes : 0;
    const Delivery delivery =
        job.book.deliver(job.requester, sample, [bytes](SampleId) { return bytes; });
    EXPECT_TRUE(delivered.insert(delivery.sample).second) << "twice in an epoch";
  }
}

// A job that does not select comes, and files are retained by orders for as long as it stays.
TEST(ImportanceBook, WhatWasReadWhileNothingIsRetainedByImportanceIsNoSubstitute) {
  Job job(asking_for(ImportanceOptions::Substitution::kAny));
  for (uint32_t epoch = 0; epoch < 8; ++epoch) job.epoch(epoch);
  const auto chosen =
      test::selected(&job.book, job.requester, 9, job.options, {}, Job::kBytes * kSamples / 5);
  std::vector<SampleId> order;
  for (SampleId sample = 0; sample < kSamples; ++sample) {
    if (chosen[sample]) order.push_back(sample);
  }
  Random random(9);
  random.shuffle(&order);
  std::set<SampleId> delivered;
  uint64_t substituted = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    const bool retained = at >= order.size() / 2;
    const auto bytes = [retained](SampleId) { return retained ? Job::kBytes : 0; };
    const Delivery delivery = job.book.deliver(job.requester, order[at], bytes);
    EXPECT_TRUE(delivered.insert(delivery.sample).second) << delivery.sample;
    substituted += delivery.kind == DeliveryKind::kSubstituted ? 1 : 0;
  }
  EXPECT_GT(substituted, 5U);
}

TEST(ImportanceBook, ASampleOfUnknownSizeIsReadItself) {
  Job job(asking_for(ImportanceOptions::Substitution::kAny));
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    (void)test::selected(&job.book, job.requester, epoch, job.options, {}, 1 << 20);
    for (SampleId sample = 0; sample < kSamples; ++sample) {
      EXPECT_EQ(job.book.deliver(job.requester, sample, [](SampleId) { return 0; }).sample, sample);
    }
  }
}

TEST(ImportanceBook, QuestionsComeInOrderAndForTheEpochThatWasSelected) {
  ImportanceBook book;
  report_all(&book, 1, 7);
  const Requester requester = of(1, 7);
  EXPECT_FALSE(book.follows(requester, 0, 0, 10)) << "nothing was selected";
  EXPECT_FALSE(book.follows(of(2, 8), 0, 0, 10));
  select(&book, requester, 4);
  EXPECT_FALSE(book.follows(requester, 3, 0, 10)) << "another loader's epoch";
  EXPECT_TRUE(book.follows(requester, 4, 0, 10));
  EXPECT_FALSE(book.follows(requester, 4, 0, 10)) << "twice";
  EXPECT_FALSE(book.follows(requester, 4, 11, 10)) << "with a gap";
  EXPECT_TRUE(book.follows(requester, 4, 10, 5));
  EXPECT_FALSE(book.follows(requester, 4, 15, 5 * kSamples)) << "without end";
  EXPECT_TRUE(book.on_read(SessionId{1}, 101, DatasetId{7}, 3, true).empty());
  EXPECT_TRUE(book.on_read(SessionId{1}, 101, DatasetId{7}, UINT64_MAX, true).empty());
}

TEST(RetentionPriorities, HoldFromWhenTheirPositionIsRead) {
  RetentionPriorities priorities;
  const std::vector<SampleId> gone = {4, 5};
  priorities.decide(1, 2.0F, DeliveryKind::kMiss, gone);
  EXPECT_TRUE(priorities.on_read(2).empty());
  const auto now = priorities.on_read(1);
  ASSERT_EQ(now.size(), 3U);
  EXPECT_EQ(now[0].sample, 4U);
  EXPECT_EQ(now[2].priority, 2.0F);
  EXPECT_TRUE(priorities.on_read(1).empty()) << "they hold once";
}

TEST(RetentionPriorities, WhatIsGoneIsDroppedWithTheNextReadingAndWhatWasNeverReadIsReported) {
  RetentionPriorities priorities;
  priorities.decide(1, 2.0F, DeliveryKind::kMiss, std::vector<SampleId>{4});
  priorities.decide(2, 2.0F, DeliveryKind::kHHit, {});
  EXPECT_EQ(priorities.end_epoch(), std::vector<SampleId>{1}) << "2 was in memory, and is";
  for (uint32_t again = 0; again < 100; ++again)
    priorities.begin_epoch(std::vector<SampleId>{4, 6});
  const auto now = priorities.on_read(9);
  std::set<SampleId> gone;
  for (const RetentionPriorities::SamplePriority& one : now) {
    EXPECT_EQ(one.priority, 0.0F);
    gone.insert(one.sample);
  }
  EXPECT_EQ(gone, (std::set<SampleId>{1, 4, 6}));
  EXPECT_EQ(now.size(), 3U) << "once each, or it grows with every epoch without a reader";
}

// Workers read batches in parallel: what comes later in the order may be read before. What it
// evicts was then gone when its own reader, which had been promised it, came to it.
TEST(RetentionPriorities, WhatIsEvictedByALaterReadStaysForItsOwnThatIsLate) {
  RetentionPriorities priorities;
  priorities.decide(4, 2.0F, DeliveryKind::kHHit, {});
  priorities.decide(1, 3.0F, DeliveryKind::kMiss, std::vector<SampleId>{4, 5});
  priorities.decide(5, 3.0F, DeliveryKind::kMiss, {});
  const auto first = priorities.on_read(1);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].sample, 5U) << "which is fetched again";
  EXPECT_EQ(first[1].sample, 1U);
  const auto own = priorities.on_read(4);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(own[1].sample, 4U);
  EXPECT_EQ(own[1].priority, 0.0F);

  priorities.on_read(5);
  priorities.decide(6, 2.0F, DeliveryKind::kHHit, {});
  priorities.decide(1, 3.0F, DeliveryKind::kMiss, std::vector<SampleId>{6});
  priorities.on_read(1);
  EXPECT_TRUE(priorities.end_epoch().empty());
  const auto next = priorities.on_read(9);
  ASSERT_EQ(next.size(), 1U) << "its own read did not come in that epoch";
  EXPECT_EQ(next[0].sample, 6U);
}

TEST(RetentionPriorities, WhatIsBroughtOutlivesEvictionsThatWereDecidedBefore) {
  RetentionPriorities priorities;
  priorities.decide(1, 2.0F, DeliveryKind::kMiss, std::vector<SampleId>{4, 5});
  priorities.bring(std::vector<SampleId>{4});
  priorities.decide(2, 2.0F, DeliveryKind::kMissOther, std::vector<SampleId>{6});
  priorities.decide(3, 2.0F, DeliveryKind::kMissOther, std::vector<SampleId>{4});
  const auto first = priorities.on_read(1);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].sample, 5U);
  EXPECT_EQ(priorities.on_read(2).size(), 2U);
  const auto last = priorities.on_read(3);
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last[0].sample, 4U) << "evicted after it was brought";
}

}  // namespace
}  // namespace sluice::policy
