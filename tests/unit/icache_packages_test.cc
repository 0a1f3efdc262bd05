// L-samples that are read in packages made ahead (iCache, section III-C, live): what is decided
// ahead of the reads is in memory when it is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

#include "tests/unit/importance_book_data.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kBytes = 8192, kCapacity = kSamples * kBytes / 5;
constexpr uint32_t kOfPackage = 20;

// A job whose requests are decided `ahead` positions before they are read, and what is in memory as
// its reads go on.
class Job {
 public:
  Job(ImportanceOptions::Substitution substitution, size_t ahead) : ahead_(ahead) {
    options_.substitution = substitution;
    options_.most_substituted = 1;
    options_.selection.warm_up = 1;
    report_all(&book, 1, 7);
  }

  void set_packages(uint32_t samples = kOfPackage) {
    book.set_packages(DatasetId{7},
                      std::make_shared<const ChunkMap>(static_cast<uint32_t>(kSamples), samples, 3),
                      std::vector<uint32_t>(kSamples, kBytes));
  }

  // `left`: the reader stops after so many.
  void epoch(uint32_t number, size_t left = kSamples) {
    const std::vector<bool> chosen =
        test::selected(&book, requester_, number, options_, {}, kCapacity);
    std::vector<SampleId> order;
    for (SampleId sample = 0; sample < kSamples; ++sample) {
      if (chosen[sample]) order.push_back(sample);
    }
    Random random(number);
    random.shuffle(&order);
    packages = 0;
    std::set<SampleId> delivered;
    std::deque<Read> decided;
    size_t reads = 0;
    for (const SampleId sample : order) {
      decided.push_back(decide(sample));
      EXPECT_TRUE(delivered.insert(decided.back().delivery.sample).second) << "epoch " << number;
      if (decided.size() <= ahead_ || reads == left) continue;
      ++reads;
      read(decided.front());
      decided.pop_front();
    }
    for (; !decided.empty() && reads < left; decided.pop_front(), ++reads) read(decided.front());
  }

  // Some leave memory though that was not decided.
  void lose(uint32_t one_in) {
    Random random(one_in);
    std::erase_if(memory_, [&](SampleId) { return random.below(one_in) == 0; });
  }

  ImportanceBook::View view() const { return book.views().at(0); }
  double hit_ratio() const {
    const DeliveryCounts counts = view().deliveries;
    const double hits =
        static_cast<double>(counts.of(DeliveryKind::kHHit) + counts.of(DeliveryKind::kLExact) +
                            counts.of(DeliveryKind::kSubstituted));
    return hits / (hits + static_cast<double>(counts.of(DeliveryKind::kMiss) +
                                              counts.of(DeliveryKind::kMissOther)));
  }

  ImportanceBook book;
  uint64_t packages = 0;  // of the last epoch
  size_t most = 0;        // samples in memory

 private:
  struct Read {
    Delivery delivery;
    std::vector<SampleId> package;
  };

  Read decide(SampleId requested) {
    book.drop_absent(DatasetId{7}, [this](SampleId sample) { return memory_.contains(sample); });
    Read read{book.deliver(requester_, requested, [](SampleId) { return kBytes; }), {}};
    const auto package = book.read_in_package(DatasetId{7});
    read.package.assign(package.begin(), package.end());
    packages += package.empty() ? 0 : 1;
    if (!package.empty()) {
      EXPECT_EQ(package.front(), read.delivery.sample);
    }
    return read;
  }

  void read(const Read& decided) {
    const SampleId sample = decided.delivery.sample;
    const bool retained = memory_.contains(sample);
    memory_.insert(decided.package.begin(), decided.package.end());
    most = std::max(most, memory_.size());
    for (const auto& [other, priority] : book.on_read(requester_.session, requester_.process,
                                                      requester_.dataset, sample, retained)) {
      if (priority == 0) {
        memory_.erase(other);
      } else if (other == sample) {
        memory_.insert(other);
      }
    }
  }

  const size_t ahead_;
  const Requester requester_ = of(1, 7);
  ImportanceOptions options_;
  std::set<SampleId> memory_;
};

class Packages : public testing::TestWithParam<size_t> {};

TEST_P(Packages, BringSubstitutesBeforeTheyAreDelivered) {
  using Substitution = ImportanceOptions::Substitution;
  Job with(Substitution::kAny, GetParam()), without(Substitution::kAny, GetParam());
  for (uint32_t epoch = 0; epoch < 10; ++epoch) {
    if (epoch == 1) with.set_packages();
    with.epoch(epoch);
    without.epoch(epoch);
    EXPECT_LE(with.packages, kSamples / kOfPackage) << "one was read twice in an epoch";
    EXPECT_EQ(without.packages, 0U);
  }
  EXPECT_GT(with.packages, 0U);
  EXPECT_EQ(with.view().broken, 0U) << "promised, and not in memory";
  EXPECT_GT(with.hit_ratio(), without.hit_ratio() + 0.05);
  // The one more has left the H-cache and comes back with a package: it is not evicted until then.
  EXPECT_LE(with.most, kCapacity / kBytes + 2 * kOfPackage + 1);
}

TEST_P(Packages, AreReadAgainWhenWhatTheyBroughtIsLost) {
  Job job(ImportanceOptions::Substitution::kAny, GetParam());
  job.epoch(0);
  job.set_packages();
  for (uint32_t epoch = 1; epoch < 8; ++epoch) {
    job.epoch(epoch, epoch % 2 == 0 ? kSamples : kSamples / 4);
    job.lose(3);
  }
  EXPECT_EQ(job.view().broken, 0U);
  EXPECT_GT(job.packages, 0U);
}

INSTANTIATE_TEST_SUITE_P(Ahead, Packages, testing::Values(0, 50, kSamples));

TEST(ChunkPackages, AreReadOnlyWhereAnyMaySubstitute) {
  using Substitution = ImportanceOptions::Substitution;
  for (const Substitution substitution : {Substitution::kNever, Substitution::kSameLabel}) {
    Job job(substitution, 50);
    job.epoch(0);
    job.set_packages();
    for (uint32_t epoch = 1; epoch < 4; ++epoch) {
      job.epoch(epoch);
      EXPECT_EQ(job.packages, 0U);
    }
  }
}

TEST(ChunkPackages, NeedNoMoreMemoryThanThereIsForSubstitutes) {
  Job job(ImportanceOptions::Substitution::kAny, 50);
  job.epoch(0);
  job.set_packages(static_cast<uint32_t>(kSamples) / 2);
  for (uint32_t epoch = 1; epoch < 4; ++epoch) job.epoch(epoch);
  EXPECT_EQ(job.view().broken, 0U);
  EXPECT_LE(job.most, kCapacity / kBytes + 1);
}

TEST(ChunkPackages, NameThoseThatWereNotLoadedTheMostUsefulFirst) {
  ChunkPackages packages(std::make_shared<const ChunkMap>(40U, 10U, 1),
                         std::vector<uint32_t>(40, 1), 1);
  packages.begin_epoch();
  const uint32_t best = 2;
  std::set<SampleId> useful = {packages.members(3).front()};
  useful.insert(packages.members(best).begin(), packages.members(best).end());
  for (const uint32_t other : {0U, 1U}) {
    useful.insert(packages.members(other).begin(), packages.members(other).begin() + 3);
  }
  const auto is_useful = [&useful](SampleId sample) { return useful.contains(sample); };
  EXPECT_EQ(packages.next_to_load(is_useful), best);
  EXPECT_LT(packages.next_to_load(is_useful), best);
  EXPECT_LT(packages.next_to_load(is_useful), best);
  EXPECT_EQ(packages.next_to_load(is_useful), kNoChunk) << "one can as well be read itself";
  packages.begin_epoch();
  EXPECT_EQ(packages.next_to_load(is_useful), best);
}

TEST(ChunkPackages, AreReadIfTheySaveMoreRequestsThanTheyCost) {
  constexpr uint32_t kEach = 60, kOne = 100'000;  // six requests
  ChunkPackages packages(std::make_shared<const ChunkMap>(kEach, kEach, 1),
                         std::vector<uint32_t>(kEach, kOne), 1);
  const auto first = [&packages](size_t count) {
    return [&packages, count](SampleId sample) {
      const auto members = packages.members(0);
      return std::find(members.begin(), members.end(), sample) - members.begin() <
             static_cast<ptrdiff_t>(count);
    };
  };
  packages.begin_epoch();
  EXPECT_EQ(packages.next_to_load(first(11)), kNoChunk);
  packages.begin_epoch();
  EXPECT_EQ(packages.next_to_load(first(12)), 0U);
  // One request brings it, but three of sixty are too little of what the link carries.
  ChunkPackages small(std::make_shared<const ChunkMap>(kEach, kEach, 1),
                      std::vector<uint32_t>(kEach, 1000), 1);
  small.begin_epoch();
  EXPECT_EQ(small.next_to_load(first(3)), kNoChunk);
  small.begin_epoch();
  EXPECT_EQ(small.next_to_load(first(8)), 0U);
}

TEST(ChunkPackages, OutliveTheRanksThatReadThem) {
  Job job(ImportanceOptions::Substitution::kAny, 50);
  job.epoch(0);
  job.set_packages();
  job.epoch(1);
  job.book.remove_process(SessionId{1}, 101);
  job.epoch(2);
  EXPECT_GT(job.packages, 0U);
  job.book.remove_dataset(DatasetId{7});
  report_all(&job.book, 1, 7);
  job.epoch(3);
  EXPECT_EQ(job.packages, 0U);
}

}  // namespace
}  // namespace sluice::policy
