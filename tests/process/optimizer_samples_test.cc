// A real optimizer process and a client that reports samples: learned, ordered, fetched ahead;
// and whatever a client may report wrongly.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <numeric>

#include "protocol/history_io.h"
#include "tests/process/samples_client.h"

namespace sluice::test {
namespace {

// Every third sample, then the rest: an order of its own.
std::vector<uint32_t> stepping(uint32_t count) {
  std::vector<uint32_t> order;
  for (uint32_t first = 0; first < 3; ++first) {
    for (uint32_t i = first; i < count; i += 3) order.push_back(i);
  }
  return order;
}

class OptimizerSamples : public testing::Test {
 protected:
  // A cold file whose parts of one size are a dataset, both declared by the job.
  void report_file(uint32_t count, uint64_t bytes = kBytes) {
    path = folder.cold_file("data", count * bytes);
    set = job.dataset(count);
    file = job.follow(path);
    ASSERT_NE(set, 0U);
    ASSERT_NE(file, 0U);
  }
  const TempFolder folder;
  const OptimizerProcess process;
  Job job{process};
  std::string path;
  uint32_t set = 0;
  uint32_t file = 0;
};

TEST_F(OptimizerSamples, WhatWasWatchedIsFetchedInThePublishedOrder) {
  constexpr uint32_t kCount = 256;
  report_file(kCount);
  EXPECT_EQ(job.dataset(kCount), set) << "said twice";
  // The first half is known after it was watched; the next epoch wants it all.
  for (uint32_t i = 0; i < kCount / 2; ++i) job.read_sample(set, i, file);
  ASSERT_TRUE(job.knows(kCount / 2));
  ASSERT_TRUE(job.order(set, 1, stepping(kCount)));
  EXPECT_TRUE(
      eventually([&] { return fetched(path, 0, kCount * kBytes / 2) == kCount * kBytes / 2; }));
  EXPECT_TRUE(eventually(
      [&] { return job.metric(SessionMetric::precached_bytes) == kCount * kBytes / 2; }));
  EXPECT_EQ(cached(path, kCount * kBytes / 2, kCount * kBytes), 0U) << "no call said where";
  for (const uint32_t index : stepping(kCount / 2)) job.read_sample(set, index, file);
  EXPECT_TRUE(eventually([&] {
    return job.metric(SessionMetric::sample_hits) == kCount / 2 &&
           job.metric(SessionMetric::precached_used_bytes) == kCount * kBytes / 2;
  }));
  EXPECT_EQ(job.metric(SessionMetric::sample_misses), 0U);
  EXPECT_EQ(job.metric(SessionMetric::events_bad), 0U);
}

TEST_F(OptimizerSamples, RowsOfOneSizeAreKnownAfterAFew) {
  constexpr uint32_t kCount = 256;
  report_file(kCount);
  const auto read_row = [&](uint32_t index, uint64_t place) {
    job.event(EventKind::kSampleBegin, set, index);
    job.part(set, index, file, place * kBytes, kBytes);
    job.event(EventKind::kSampleEnd, set, index);
  };
  for (uint32_t i = 0; i < 8; ++i) read_row(i * 11, i * 11);
  ASSERT_TRUE(job.knows(kCount));
  ASSERT_TRUE(job.order(set, 0, stepping(kCount)));
  EXPECT_TRUE(eventually([&] { return fetched(path, 0, kCount * kBytes) == kCount * kBytes; }))
      << fetched(path, 0, kCount * kBytes) << ": " << status(job.socket);
  // One that is elsewhere ends it: what was seen is known, and no more.
  read_row(200, 7);
  EXPECT_TRUE(job.knows(9));
}

TEST_F(OptimizerSamples, AnotherSessionsWorkersTakeFromTheOnlyOrder) {
  report_file(64);
  Job worker(process);
  const uint32_t same = worker.follow(path);
  ASSERT_NE(same, 0U);
  ASSERT_EQ(worker.dataset(64), set) << "one dataset for all";
  for (uint32_t i = 0; i < 64; ++i) worker.read_sample(set, i, same);
  ASSERT_TRUE(job.knows(64));
  ASSERT_TRUE(job.order(set, 1, stepping(64)));
  EXPECT_TRUE(
      eventually([&] { return job.metric(SessionMetric::precached_bytes) == 64 * kBytes; }));
  for (const uint32_t index : stepping(64)) worker.read_sample(set, index, same);
  // The job reports; its workers may be gone by then.
  EXPECT_TRUE(eventually([&] { return job.metric(SessionMetric::sample_hits) == 64; }));
  EXPECT_EQ(worker.metric(SessionMetric::sample_hits), 0U);
}

TEST_F(OptimizerSamples, AWorkersFileStaysFollowedForTheOrdersSession) {
  path = folder.cold_file("data", 64 * kBytes);
  set = job.dataset(64);
  ASSERT_TRUE(job.order(set, 0, stepping(64)));
  {
    Job worker(process);
    file = worker.follow(path);
    ASSERT_NE(file, 0U);
    ASSERT_EQ(worker.dataset(64), set);
    for (const uint32_t index : stepping(64)) worker.read_sample(set, index, file);
    ASSERT_TRUE(job.knows(64));
    EXPECT_TRUE(worker.bye());
  }
  ASSERT_EQ(cached(path, 0, 64 * kBytes), 0U);
  ASSERT_TRUE(job.order(set, 1, stepping(64)));
  EXPECT_TRUE(eventually([&] { return fetched(path, 0, 64 * kBytes) == 64 * kBytes; }));
}

TEST_F(OptimizerSamples, SamplesThatSharePagesAreAllInMemory) {
  constexpr uint32_t kCount = 256, kSmall = 1000;
  report_file(kCount, kSmall);
  for (uint32_t i = 0; i < kCount; ++i) job.read_sample(set, i, file, kSmall);
  ASSERT_TRUE(job.knows(kCount));
  const uint64_t missed = job.metric(SessionMetric::sample_misses);
  ASSERT_TRUE(job.order(set, 1, stepping(kCount)));
  ASSERT_TRUE(
      eventually([&] { return job.metric(SessionMetric::precached_bytes) >= kCount * kSmall; }));
  for (const uint32_t index : stepping(kCount)) job.read_sample(set, index, file, kSmall);
  EXPECT_TRUE(eventually([&] { return job.metric(SessionMetric::sample_hits) == kCount; }))
      << job.metric(SessionMetric::sample_hits);
  EXPECT_EQ(job.metric(SessionMetric::sample_misses), missed);
  // It was read and was in memory; but it is not any more.
  evict(path);
  for (uint32_t i = 0; i < kCount; ++i) job.read_sample(set, i, file, kSmall);
  EXPECT_TRUE(
      eventually([&] { return job.metric(SessionMetric::sample_misses) == missed + kCount; }));
}

// A job's question which samples an epoch fetches; the job may end before it is answered.
struct Selection {
  Selection(const Job& job, uint32_t set, const std::vector<uint8_t>& candidates)
      : memory(memfd_create("candidates", MFD_CLOEXEC)), connection(job.socket) {
    EXPECT_EQ(write(memory.get(), candidates.data(), candidates.size()),
              static_cast<ssize_t>(candidates.size()));
    protocol::Samples message = job.message_about(set, 0, candidates.size());
    message.bytes = candidates.size();
    connection.send(MessageKind::kSelect, bytes_of(message), memory.get());
  }
  // What comes after all that says that the optimizer works on it.
  MessageKind answer() {
    for (;;) {
      const auto reply = connection.receive(60);
      if (!reply) return MessageKind{};
      if (reply->header.kind != MessageKind::kWorking) return reply->header.kind;
      ++working;
    }
  }
  const UniqueFd memory;
  const Connection connection;
  int working = 0;
};

TEST_F(OptimizerSamples, AJobThatRequestsASelectionIsNotifiedOfTheWork) {
  set = job.dataset(1000);
  std::vector<uint8_t> candidates(1000, 1);
  std::fill(candidates.begin() + 400, candidates.end(), 0);
  Selection selection(job, set, candidates);
  EXPECT_EQ(selection.answer(), MessageKind::kDone);
  EXPECT_GE(selection.working, 1);
  std::vector<uint8_t> chosen(1000);
  EXPECT_EQ(pread(selection.memory.get(), chosen.data(), 1000, 0), 1000);
  EXPECT_EQ(chosen, candidates) << "nothing is known of their losses: all that are the job's";
  // A number of samples that the dataset does not have.
  EXPECT_EQ(Selection(job, set, std::vector<uint8_t>(999, 1)).answer(), MessageKind::kRefused);
}

// What one reads is retained for the other as well, for as long as both are there.
TEST_F(OptimizerSamples, TheStageRetainsWhatAllNeedWhileTwoJobsSelectFromOneDataset) {
  const std::vector<uint8_t> all(1000, 1);
  const auto kept_by = [&](const char* policy) {
    const std::string text = "\"policy\":\"" + std::string(policy) + "\"";
    return eventually([&] { return status(process.socket()).find(text) != std::string::npos; });
  };
  const auto begin = [&](const Job& selecting) {
    const protocol::StageAsked open{selecting.welcome().session, selecting.welcome().token};
    const auto staged = selecting.ask(MessageKind::kStage, bytes_of(open));
    EXPECT_TRUE(staged && staged->header.kind == MessageKind::kStageKnown);
    EXPECT_EQ(Selection(selecting, selecting.dataset(1000), all).answer(), MessageKind::kDone);
  };
  ASSERT_TRUE(job.bye());  // it does not select: files would be retained by all orders
  const char* options = "importance=iis\nstage=always\n";
  Job one(process, options);
  begin(one);
  EXPECT_TRUE(kept_by("shade"));
  {
    Job other(process, options);
    begin(other);
    EXPECT_TRUE(kept_by("needed"));
    EXPECT_TRUE(other.bye());
  }
  EXPECT_TRUE(kept_by("shade"));
}

TEST_F(OptimizerSamples, AJobThatEndsBeforeItsEpochIsChosenDoesNoHarm) {
  constexpr uint32_t kCount = 2'000'000;
  const std::vector<uint8_t> all(kCount, 1);
  set = job.dataset(kCount);
  for (int i = 0; i < 3; ++i) {
    const Selection leaves(job, set, all);
    ASSERT_TRUE(leaves.connection.receive());
  }
  {
    Job other(process);
    const uint32_t same = other.dataset(kCount);
    ASSERT_TRUE(Selection(other, same, all).connection.receive());
    EXPECT_TRUE(other.bye());
  }
  // The optimizer may still work on the request of the one that left.
  EXPECT_TRUE(eventually([&] { return Selection(job, set, all).answer() == MessageKind::kDone; }));
}

TEST_F(OptimizerSamples, DeclaredPlacesAreFetchedInTheFirstEpoch) {
  constexpr uint32_t kCount = 64;
  report_file(kCount);
  std::vector<protocol::Place> places;
  // The last lies beyond the file's end, and of the first nothing is said.
  for (uint64_t i = 0; i < kCount; ++i) places.push_back({i * kBytes, kBytes, 0});
  places.front().length = 0;
  places.back().offset = kCount * kBytes;
  EXPECT_TRUE(job.locate(set, file, places));
  EXPECT_TRUE(job.knows(kCount - 2));
  ASSERT_TRUE(job.order(set, 0, stepping(kCount)));
  EXPECT_TRUE(eventually([&] {
    return fetched(path, kBytes, (kCount - 1) * kBytes) == (kCount - 2) * kBytes;
  })) << fetched(path, kBytes, (kCount - 1) * kBytes)
      << " of " << (kCount - 2) * kBytes << ": " << status(job.socket);
  EXPECT_EQ(cached(path, 0, kBytes), 0U);
  EXPECT_FALSE(job.locate(set, file + 1, places)) << "of a file that is not followed";
  EXPECT_FALSE(job.locate(set + 1, file, places)) << "of a dataset that there is not";
  EXPECT_FALSE(job.locate(set, file, places, kCount)) << "of samples that there are not";
  EXPECT_FALSE(job.locate(set, file, places, 0, 8)) << "of less memory than they take";
}

TEST_F(OptimizerSamples, DeclaredFilesThatAreNotReadAreDiscarded) {
  set = job.dataset(10);
  std::vector<std::string> paths(10);
  for (int i = 0; i < 10; ++i) paths[i] = "/somewhere/" + std::to_string(i);
  ASSERT_TRUE(job.locate_files(set, paths));
  EXPECT_EQ(job.located(10), 100U);
  ASSERT_TRUE(job.seen(set, {{4, "/somewhere/4"}, {7, "/elsewhere/7"}, {2, "/elsewhere/2"}}));
  EXPECT_EQ(job.located(10), 100U) << "some may be exceptions";
  ASSERT_TRUE(job.seen(set, {{1, "/elsewhere/1"}}));
  EXPECT_EQ(job.located(10), 30U) << "what was seen otherwise stays known";
  ASSERT_TRUE(job.locate_files(set, paths)) << "declared again";
  EXPECT_EQ(job.located(10), 100U);
}

TEST_F(OptimizerSamples, SamplesOfSeveralFiles) {
  set = job.dataset(4);
  ASSERT_TRUE(job.locate_files(set, {"/a/0", "/b/0", "", "", "/a/2", "", "/a/3", "/b/3"}, 2));
  EXPECT_EQ(job.located(4), 75U) << "sample 1 has no file";
  ASSERT_TRUE(job.seen(set, {{0, "/a/0"}, {2, "/a/2"}, {3, "/b/3"}})) << "some of them are";
  EXPECT_EQ(job.located(4), 75U);
  EXPECT_FALSE(job.locate_files(set, {"/a/0", "/b/0"}, 0));
  EXPECT_FALSE(job.locate_files(set, {"/1", "/2", "/3", "/4", "/5"}, 5));
  EXPECT_FALSE(job.locate_files(set, {"/a/0", "b/0"}, 2)) << "not absolute";
}

TEST_F(OptimizerSamples, ReportsThatGainNothingAreNotRequested) {
  const auto& idle = job.shared()->header.samples_idle;
  set = job.dataset(2);
  EXPECT_EQ(idle.load(), 0U);
  ASSERT_TRUE(job.order(set, 0, {1, 0}));
  EXPECT_EQ(idle.load(), 0U) << "nothing is known of the samples: they are to be watched";
  EXPECT_TRUE(job.locate_files(set, {"/somewhere/a", "/somewhere/b"}));
  ASSERT_TRUE(job.order(set, 1, {1, 0}));
  EXPECT_EQ(idle.load(), 1U) << "whole files, and this session has no stage";
  // Orders are still taken, though no call says that an epoch is over.
  for (uint32_t epoch = 2; epoch < 100; ++epoch) ASSERT_TRUE(job.order(set, epoch, {0, 1}));
  EXPECT_NE(status(job.socket).find("\"epoch\":99,"), std::string::npos);
  const uint32_t other = job.dataset(2, "other");
  ASSERT_TRUE(job.order(other, 0, {0, 1}));
  EXPECT_EQ(idle.load(), 0U) << "of this one nothing is known";
}

// A job of three epochs had four in its report: its last sample ended once the order of the next
// had been published.
TEST_F(OptimizerSamples, TheEndOfAnEpochsLastSampleBeginsNoOther) {
  constexpr uint32_t kCount = 64;
  report_file(kCount);
  ASSERT_TRUE(job.order(set, 1, stepping(kCount)));
  for (const uint32_t index : stepping(kCount - 1)) job.read_sample(set, index, file);
  job.event(EventKind::kSampleBegin, set, kCount - 1);
  job.part(set, kCount - 1, file, 0, kBytes);
  const auto handled = [this](uint64_t events) {
    return eventually([&] { return job.metric(SessionMetric::events_seen) >= events; });
  };
  ASSERT_TRUE(handled(3 * kCount - 1));
  ASSERT_TRUE(job.order(set, 2, stepping(kCount)));
  job.event(EventKind::kSampleEnd, set, kCount - 1);
  ASSERT_TRUE(handled(3 * kCount));
  const auto history = std::make_unique<protocol::HistoryCopy>();
  const auto points = [&] {
    return protocol::copy(job.shared()->history, *history) ? history->points : 0;
  };
  const uint64_t before = points();
  EXPECT_TRUE(eventually([&] { return points() > before + 1; }));
  EXPECT_EQ(history->epochs_seen, 1U);
  job.event(EventKind::kSampleBegin, set, 0);
  EXPECT_TRUE(eventually([&] { return points() != 0 && history->epochs_seen == 2; }));
}

TEST_F(OptimizerSamples, RefusesOrdersThatMakeNoSense) {
  set = job.dataset(100);
  ASSERT_NE(set, 0U);
  EXPECT_EQ(job.dataset(0), 0U);
  EXPECT_EQ(job.dataset(protocol::kMaxSamples + 1), 0U);
  EXPECT_FALSE(job.order(set, 0, {100})) << "a sample that there is not";
  EXPECT_FALSE(job.order(set + 1, 0, {1})) << "a dataset that there is not";
  const UniqueFd two = memory_of({1, 2});
  EXPECT_FALSE(job.order(job.message_about(set, 0, 3), two.get())) << "shorter than it says";
  EXPECT_FALSE(job.order(job.message_about(set, 0, UINT64_MAX), two.get()));
  EXPECT_FALSE(job.order(job.message_about(set, 0, 2), -1)) << "no descriptor";
  protocol::Samples far = job.message_about(set, 0, 2);
  far.first = UINT64_MAX;
  EXPECT_FALSE(job.order(far, two.get()));
  protocol::Samples stranger = job.message_about(set, 0, 2);
  stranger.token ^= 1;
  EXPECT_FALSE(job.order(stranger, two.get()));
  // What could make the optimizer wait is not read.
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  EXPECT_FALSE(job.order(job.message_about(set, 0, 2), reading.get()));
  const UniqueFd regular(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(job.order(job.message_about(set, 0, 2), regular.get()));
  EXPECT_TRUE(job.order(job.message_about(set, 0, 2), two.get())) << "and answers still";
}

TEST_F(OptimizerSamples, EventsOfSamplesThatAreNotThereDoNothing) {
  report_file(64);
  job.event(EventKind::kSampleEnd, set, 5);
  job.event(EventKind::kSampleBegin, set, 64);
  job.event(EventKind::kSampleBegin, set + 9, 1);
  job.read_sample(set, 3, file + 7);  // a file that is not the session's
  job.read_sample(set, UINT32_MAX, file);
  job.read_sample(set, 1ULL << 39, file);
  for (int i = 0; i < 200; ++i) job.event(EventKind::kSampleBegin, set, 1);
  ASSERT_TRUE(job.order(set, 1, {0, 1, 2, 3}));
  for (int i = 0; i < 4; ++i) job.read_sample(set, static_cast<uint64_t>(i), file);
  EXPECT_TRUE(eventually([&] { return job.metric(SessionMetric::events_seen) >= 215; }));
  EXPECT_EQ(job.metric(SessionMetric::precached_bytes), 0U) << "nothing was known of that order";
  EXPECT_NE(status(process.socket()).find("\"datasets\""), std::string::npos);
}

}  // namespace
}  // namespace sluice::test
