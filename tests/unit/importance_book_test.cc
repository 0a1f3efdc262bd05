// What jobs report and what is selected for them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tests/unit/importance_book_data.h"

namespace sluice::policy {
namespace {

TEST(ImportanceBook, WarmsUpAndThenFetchesWhatMattersAndEveryThirdEpochAll) {
  ImportanceBook book;
  report_all(&book, 1, 7);
  for (uint32_t epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(count(select(&book, of(1, 7), epoch)), kSamples) << epoch;
  }
  for (const uint32_t epoch : {5U, 6U, 8U, 9U}) {
    const std::vector<bool> chosen = select(&book, of(1, 7), epoch);
    EXPECT_NEAR(static_cast<double>(count(chosen)), kSamples / 2.0, 80) << epoch;
    const auto middle = chosen.begin() + kSamples / 2;
    EXPECT_GT(std::count(middle, chosen.end(), true), 2 * std::count(chosen.begin(), middle, true));
  }
  EXPECT_EQ(count(select(&book, of(1, 7), 7)), kSamples);
}

TEST(ImportanceBook, JobsAndDatasetsAreTheirOwn) {
  ImportanceBook book;
  report_all(&book, 1, 7);
  EXPECT_EQ(count(select(&book, of(2, 7), 5)), kSamples) << "nothing is known of job 2";
  EXPECT_EQ(count(select(&book, of(1, 8, 10), 5)), 10U);
  ASSERT_EQ(book.views().size(), 3U);
  EXPECT_EQ(book.views()[0].known, kSamples);
  book.remove_session(SessionId{1});
  ASSERT_EQ(book.views().size(), 1U);
  EXPECT_EQ(count(select(&book, of(1, 7), 5)), kSamples);
  book.remove_dataset(DatasetId{7});
  EXPECT_TRUE(book.views().empty());
}

TEST(ImportanceBook, RefusesWhatSaysNothing) {
  ImportanceBook book;
  EXPECT_FALSE(book.report(of(1, 7), kSamples, 1));
  EXPECT_FALSE(book.report(of(1, 7), UINT64_MAX, 1));
  EXPECT_FALSE(book.report(of(1, 7), 3, std::nan("")));
  EXPECT_FALSE(book.report(of(1, 7), 3, std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(book.report(of(1, 7), 3, 1e300)) << "infinite as a float";
  EXPECT_TRUE(book.report(of(1, 7), 3, -1));
  EXPECT_EQ(book.views()[0].refused, 5U);
  EXPECT_EQ(book.views()[0].known, 1U);
}

TEST(ImportanceBook, IsBoundedWhateverDatasetsSayOfThemselves) {
  ImportanceBook book;
  EXPECT_FALSE(book.report(of(1, 7, ImportanceBook::kMostSamples + 1), 0, 1));
  EXPECT_TRUE(select(&book, of(1, 7, ImportanceBook::kMostSamples + 1), 0).empty());
  EXPECT_TRUE(select(&book, of(1, 7, ImportanceBook::kMostSelected + 1), 0).empty());
  EXPECT_TRUE(book.views().empty());
  const uint64_t large = ImportanceBook::kMostSelected;
  const auto most = static_cast<uint32_t>(ImportanceBook::kMostSelectedAll / large);
  for (uint32_t rank = 0; rank < most; ++rank) {
    const auto choice =
        book.request({1, SessionId{1 + rank}, 100 + rank, DatasetId{7}, large}, 0, {}, {});
    EXPECT_NE(choice, nullptr) << rank;
    book.drop({1, SessionId{1 + rank}, 100 + rank, DatasetId{7}, large}, choice);
  }
  EXPECT_EQ(book.request({1, SessionId{99}, 199, DatasetId{7}, large}, 0, {}, {}), nullptr);
  EXPECT_FALSE(select(&book, of(2, 8), 0).empty()) << "a small one";
}

TEST(ImportanceBook, ARankIsChosenForOnceAtATime) {
  ImportanceBook book;
  report_all(&book, 1, 7);
  auto choice = book.request(of(1, 7), 5, {}, {});
  ASSERT_NE(choice, nullptr);
  EXPECT_EQ(book.request(of(1, 7), 6, {}, {}), nullptr) << "it is being decided";
  EXPECT_FALSE(select(&book, {1, SessionId{1}, 102, DatasetId{7}, kSamples}, 5).empty())
      << "another rank";
  choose(choice.get());
  EXPECT_FALSE(book.follows(of(1, 7), 5, 0, 1)) << "nothing has begun";
  EXPECT_FALSE(book.follows(of(1, 7), 0, 0, 1)) << "nor that of no question";
  EXPECT_TRUE(book.begin(of(1, 7), choice, 0));
  EXPECT_TRUE(book.follows(of(1, 7), 5, 0, 1));
  EXPECT_FALSE(book.begin(of(1, 7), choice, 0)) << "twice";
  EXPECT_NE(book.request(of(1, 7), 6, {}, {}), nullptr);
}

TEST(ImportanceBook, ARankWhoseChoiceWasAbandonedMayAskAgain) {
  ImportanceBook book;
  report_all(&book, 1, 7);
  const auto choice = book.request(of(1, 7), 5, {}, {});
  book.drop(of(1, 7), choice);
  EXPECT_FALSE(book.begin(of(1, 7), choice, 0));
  EXPECT_NE(book.request(of(1, 7), 5, {}, {}), nullptr);
  book.drop(of(1, 7), choice);
  EXPECT_EQ(book.request(of(1, 7), 5, {}, {}), nullptr) << "the new one is no matter of the old";
}

// The list of the remaining job was taken, which it did not have.
TEST(ImportanceBook, AJobThatEndsWhileAnothersFirstEpochIsChosenDoesNotDisturbIt) {
  ImportanceBook book;
  ImportanceOptions options;
  options.substitution = ImportanceOptions::Substitution::kAny;
  const auto deliver_all = [&](const Requester& requester, const std::vector<bool>& chosen) {
    for (SampleId sample = 0; sample < kSamples; ++sample) {
      if (!chosen[sample]) continue;
      EXPECT_NE(book.deliver(requester, sample, [](SampleId) { return uint64_t{4096}; }).sample,
                kNoSample);
    }
  };
  for (const uint32_t job : {1U, 2U}) report_all(&book, job, 7);
  const uint64_t capacity = 4096 * kSamples / 5;
  for (uint32_t epoch = 5; epoch < 7; ++epoch) {
    deliver_all(of(1, 7), test::selected(&book, of(1, 7), epoch, options, {}, capacity));
  }
  const auto choice = book.request(of(2, 7), 5, options, {});
  ASSERT_NE(choice, nullptr);
  book.remove_session(SessionId{1});
  choose(choice.get());
  ASSERT_TRUE(book.begin(of(2, 7), choice, capacity));
  deliver_all(of(2, 7), choice->chosen);
}

TEST(ImportanceBook, JobsThatSelectFromOneDatasetShareIt) {
  ImportanceBook book;
  for (const uint32_t job : {1U, 2U}) report_all(&book, job, 7);
  select(&book, of(1, 7), 0);
  select(&book, of(2, 8), 0);  // another dataset
  EXPECT_FALSE(book.shares(SessionId{1})) << "the other only reports";
  EXPECT_FALSE(book.shares(SessionId{2}));
  // Ranks of one model, each a session.
  Requester rank = of(1, 7);
  rank.session = SessionId{3};
  select(&book, rank, 0);
  EXPECT_FALSE(book.shares(SessionId{1}));
  EXPECT_FALSE(book.shares(SessionId{3}));
  select(&book, of(2, 7), 0);
  for (const uint32_t session : {1U, 2U, 3U}) {
    EXPECT_TRUE(book.shares(SessionId{session})) << session;
  }
  EXPECT_FALSE(book.shares(SessionId{4}));
  book.remove_session(SessionId{2});
  EXPECT_FALSE(book.shares(SessionId{1}));
}

TEST(ImportanceBook, ARankThatEndsWhileItsEpochIsChosenBeginsNone) {
  const std::vector<std::function<void(ImportanceBook*)>> ways{
      [](ImportanceBook* book) { book->remove_process(SessionId{1}, 101); },
      [](ImportanceBook* book) { book->remove_session(SessionId{1}); },
      [](ImportanceBook* book) { book->remove_dataset(DatasetId{7}); },
      // The same number, another process.
      [](ImportanceBook* book) {
        book->remove_process(SessionId{1}, 101);
        EXPECT_FALSE(select(book, of(1, 7), 0).empty());
      }};
  for (const auto& leave : ways) {
    ImportanceBook book;
    report_all(&book, 1, 7);
    auto choice = book.request(of(1, 7), 5, {}, {});
    ASSERT_NE(choice, nullptr);
    leave(&book);
    choose(choice.get());
    EXPECT_FALSE(book.begin(of(1, 7), choice, 0));
  }
}

}  // namespace
}  // namespace sluice::policy
