// What jobs report and what they are told to fetch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "optimizer/importance/book.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kSamples = 1000;

uint64_t count(const std::vector<bool>& chosen) {
  return static_cast<uint64_t>(std::count(chosen.begin(), chosen.end(), true));
}

void report_all(ImportanceBook* book, uint32_t job, uint32_t dataset) {
  for (uint64_t sample = 0; sample < kSamples; ++sample) {
    EXPECT_TRUE(book->report(job, dataset, kSamples, sample, static_cast<double>(sample)));
  }
}

TEST(ImportanceBook, WarmsUpAndThenFetchesWhatMattersAndEveryThirdEpochAll) {
  ImportanceBook book;
  report_all(&book, 1, 7);
  for (uint32_t epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(count(book.select(1, 7, kSamples, epoch)), kSamples) << epoch;
  }
  for (const uint32_t epoch : {5U, 6U, 8U, 9U}) {
    const std::vector<bool> chosen = book.select(1, 7, kSamples, epoch);
    EXPECT_NEAR(static_cast<double>(count(chosen)), kSamples / 2.0, 80) << epoch;
    const auto middle = chosen.begin() + kSamples / 2;
    EXPECT_GT(std::count(middle, chosen.end(), true), 2 * std::count(chosen.begin(), middle, true));
  }
  EXPECT_EQ(count(book.select(1, 7, kSamples, 7)), kSamples);
}

TEST(ImportanceBook, JobsAndDatasetsAreTheirOwn) {
  ImportanceBook book;
  report_all(&book, 1, 7);
  EXPECT_EQ(count(book.select(2, 7, kSamples, 5)), kSamples) << "nothing is known of job 2";
  EXPECT_EQ(count(book.select(1, 8, 10, 5)), 10U);
  ASSERT_EQ(book.views().size(), 3U);
  EXPECT_EQ(book.views()[0].known, kSamples);
  book.forget_job(1);
  ASSERT_EQ(book.views().size(), 1U);
  EXPECT_EQ(count(book.select(1, 7, kSamples, 5)), kSamples);
  book.forget_dataset(7);
  EXPECT_TRUE(book.views().empty());
}

TEST(ImportanceBook, RefusesWhatSaysNothing) {
  ImportanceBook book;
  EXPECT_FALSE(book.report(1, 7, kSamples, kSamples, 1));
  EXPECT_FALSE(book.report(1, 7, kSamples, UINT64_MAX, 1));
  EXPECT_FALSE(book.report(1, 7, kSamples, 3, std::nan("")));
  EXPECT_FALSE(book.report(1, 7, kSamples, 3, std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(book.report(1, 7, kSamples, 3, 1e300)) << "infinite as a float";
  EXPECT_TRUE(book.report(1, 7, kSamples, 3, -1));
  EXPECT_EQ(book.views()[0].refused, 5U);
  EXPECT_EQ(book.views()[0].known, 1U);
}

TEST(ImportanceBook, IsBoundedWhateverDatasetsSayOfThemselves) {
  ImportanceBook book;
  EXPECT_FALSE(book.report(1, 7, ImportanceBook::kMostSamples + 1, 0, 1));
  EXPECT_TRUE(book.select(1, 7, ImportanceBook::kMostSamples + 1, 0).empty());
  EXPECT_TRUE(book.views().empty());
}

}  // namespace
}  // namespace sluice::optimizer
