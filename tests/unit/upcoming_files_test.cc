// Which files are read next, of several orders: those in flight first, those that were left last.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "policy/samples/sample_book.h"

namespace sluice::test {
namespace {

using policy::DatasetId;
using policy::Extent;
using policy::JobOrders;
using policy::SampleBook;
using policy::SessionId;
using Verdict = policy::FetchVerdict;

Verdict take_all(SessionId, const Extent&) { return Verdict::kTake; }

JobOrders::Window bytes(uint64_t window) {
  return [window](const JobOrders::Ahead&) { return window; };
}

// 128 datasets of a job that left each epoch early: one prediction took 0.3 s, and so long the
// optimizer answered no question.
TEST(UpcomingFiles, APredictionIsBounded) {
  SampleBook book;
  std::vector<uint32_t> order(50);
  std::iota(order.begin(), order.end(), 0U);
  const DatasetId both[] = {book.use(SessionId{1}, "first", 50),
                            book.use(SessionId{1}, "next", 50)};
  uint32_t file = 0;
  for (const DatasetId dataset : both) {
    for (const uint32_t sample : order) {
      book.datasets().locate(SessionId{1}, dataset, sample,
                             {policy::whole_file(policy::SampleFileId{++file})},
                             policy::Source::kDeclared);
    }
    book.publish(SessionId{1}, dataset, 0, 0, order);
  }
  std::vector<policy::SampleFileId> first;
  for (uint32_t i = 1; i <= 10; ++i) {
    first.push_back(policy::SampleFileId{i});
    first.push_back(policy::SampleFileId{50 + i});
  }
  EXPECT_EQ(book.orders().upcoming_files(20), first) << "of each the nearest";
  EXPECT_EQ(book.orders().upcoming(both[1], 30), std::vector(order.begin(), order.begin() + 30));
  EXPECT_EQ(book.orders().upcoming(both[1]), order);
  for (const uint32_t sample : order) book.begin(SessionId{1}, 1, both[0], sample);
  EXPECT_EQ(book.orders().upcoming_files(20).size(), 20U) << "one that was read takes no share";
}

// The place of a sample in the coming epoch was used up by the one that was being read as it began.
TEST(UpcomingFiles, WhatIsBeingReadComesFirst) {
  policy::FileTable files;
  SampleBook book(&files);
  std::vector<uint32_t> order(20);
  std::iota(order.begin(), order.end(), 0U);
  const DatasetId data = book.use(SessionId{1}, "files", 20);
  const auto file = [&files](uint32_t number) {
    return files.intern("/" + std::to_string(number));
  };
  for (const uint32_t sample : order) {
    book.datasets().locate(
        SessionId{1}, data, sample,
        {policy::whole_file(file(100 + sample)), policy::whole_file(file(200 + sample))},
        policy::Source::kDeclared);
  }
  book.publish(SessionId{1}, data, 0, 0, order);
  int judged = 0;
  // Of the third, the first file only.
  const JobOrders::Judge judge = [&judged](SessionId, const Extent&) {
    return ++judged > 5 ? Verdict::kLater : Verdict::kHere;
  };
  EXPECT_FALSE(book.orders().next(bytes(1 << 20), judge));
  book.begin(SessionId{1}, 1, data, 0);
  book.begin(SessionId{1}, 2, data, 9);
  auto coming = book.upcoming_files();
  std::vector<policy::SampleFileId> readers = {file(100), file(200), file(109), file(209),
                                               file(101), file(201), file(102)};
  std::ranges::sort(readers);
  std::ranges::sort(coming.readers);
  EXPECT_EQ(coming.readers, readers);
  ASSERT_EQ(coming.order.size(), 40U) << "none twice";
  std::vector first(coming.order.begin(), coming.order.begin() + 6);
  std::vector begun = {file(100), file(200), file(109), file(209), file(101), file(201)};
  std::sort(first.begin(), first.begin() + 4);
  std::sort(begun.begin(), begun.begin() + 4);
  EXPECT_EQ(first, begun);
}

// A dataset for each epoch, over the same files, and each left early: what was ahead as they were
// left had readers for ever.
TEST(UpcomingFiles, OrdersThatWereLeftHaveNoReaders) {
  constexpr uint32_t kSets = 6, kSamples = 1000, kAhead = 4, kRead = 300;
  policy::FileTable files;
  SampleBook book(&files);
  std::vector<uint32_t> order(kSamples);
  std::iota(order.begin(), order.end(), 0U);
  DatasetId sets[kSets];
  const auto read = [&](uint32_t set, uint32_t index) {
    book.begin(SessionId{1}, 1, sets[set], index);
    book.end(1, sets[set], index);
  };
  for (uint32_t set = 0; set < kSets; ++set) {
    sets[set] = book.use(SessionId{1}, std::to_string(set), kSamples);
    for (const uint32_t sample : order) {
      const auto file = policy::whole_file(files.intern("/" + std::to_string(sample)));
      book.datasets().locate(SessionId{1}, sets[set], sample, {file}, policy::Source::kDeclared);
    }
    std::ranges::reverse(order);
    book.publish(SessionId{1}, sets[set], 0, 0, order);
    EXPECT_TRUE(book.orders().begin_epochs());
    if (set > 0) read(set - 1, order[kSamples - 1 - kRead]);  // an event that came late
    const auto window = [&](const JobOrders::Ahead& ahead) -> uint64_t {
      return ahead.dataset == sets[set] ? 1 << 20 : 0;
    };
    EXPECT_TRUE(book.orders().next(window, take_all));
    for (uint32_t i = 0; i < kRead; ++i) {
      read(set, order[i]);
      EXPECT_EQ(book.orders().begin_epochs(), set > 1 && i == 254) << "the one before the last";
    }
    for (uint32_t i = 0; i < kAhead; ++i) EXPECT_TRUE(book.orders().next(window, take_all));
    EXPECT_LE(book.upcoming_files().readers.size(), 2 * kAhead);
  }
  const auto all = [](const JobOrders::Ahead&) -> uint64_t { return 1 << 20; };
  while (const auto wanted = book.orders().next(all, take_all))
    EXPECT_GE(number(wanted->dataset), number(sets[kSets - 2])) << "nothing else is needed";
  const auto coming = book.upcoming_files().order;
  EXPECT_GT(coming.size(), 5 * (kSamples - kRead));
  EXPECT_EQ(std::count(coming.begin(), coming.begin() + 2 * (kSamples - kRead) - 10, coming[0]), 2)
      << "those that were left come last";
  read(0, order[500]);
  EXPECT_TRUE(book.orders().begin_epochs()) << "it was not left after all";
  const auto wanted = book.orders().next(all, take_all);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->dataset, sets[0]) << "and what was handed out before is handed out again";
}

// A job that validates within its epochs, and reads two datasets by turns.
TEST(UpcomingFiles, OrdersThatAreReadAgainAreNotLeft) {
  constexpr uint32_t kSamples = 4000, kValidation = 1000, kBatch = 64;
  policy::FileTable files;
  SampleBook book(&files);
  const auto use = [&](const char* name, uint32_t samples) {
    const DatasetId data = book.use(SessionId{1}, name, samples);
    for (uint32_t sample = 0; sample < samples; ++sample) {
      const auto file = policy::whole_file(files.intern(name + std::to_string(sample)));
      book.datasets().locate(SessionId{1}, data, sample, {file}, policy::Source::kDeclared);
    }
    return data;
  };
  const DatasetId train = use("train", kSamples), other = use("other", kValidation);
  std::vector<uint32_t> order(kSamples);
  std::iota(order.begin(), order.end(), 0U);
  const std::span<const uint32_t> part(order.data(), kValidation);
  const auto all = [](const JobOrders::Ahead&) -> uint64_t { return 1 << 20; };
  const auto read = [&](DatasetId data, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i) {
      book.begin(SessionId{1}, 1, data, i);
      book.end(1, data, i);
      book.orders().begin_epochs();
      while (book.orders().next(all, take_all)) continue;
      for (const auto& entry : book.orders().all()) ASSERT_FALSE(entry.second.left) << "at " << i;
    }
  };
  book.publish(SessionId{1}, train, 0, 0, order);
  uint32_t epoch = 0, at = 0;
  for (int times = 0; times < 3; ++times, at += 500) {
    read(train, at, at + 500);
    book.publish(SessionId{1}, other, epoch++, 0, part);
    read(other, 0, kValidation);
  }
  for (uint32_t in_other = kValidation; at < kSamples; at += kBatch) {
    if (in_other >= kValidation) book.publish(SessionId{1}, other, epoch++, 0, part);
    if (in_other >= kValidation) in_other = 0;
    read(train, at, std::min(at + kBatch, kSamples));
    read(other, in_other, std::min(in_other + kBatch, kValidation));
    in_other += kBatch;
  }
}

}  // namespace
}  // namespace sluice::test
