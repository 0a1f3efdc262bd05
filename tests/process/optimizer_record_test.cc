// A real optimizer process that records what a client's samples report, and whatever descriptor a
// client may pass instead of a trace's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "protocol/trace.h"
#include "tests/process/samples_client.h"

namespace sluice::test {
namespace {

using protocol::TraceHeader;
using protocol::TraceRecord;

struct RecordedJob : Job {
  using Job::Job;
  // "" or why it was refused.
  std::string record(int fd, uint64_t token_lie = 0) const {
    const protocol::Record body{welcome().session, welcome().token ^ token_lie};
    const auto reply = ask(MessageKind::kRecord, bytes_of(body), fd);
    if (!reply) return "no answer";
    return reply->header.kind == MessageKind::kDone ? "" : reply->body;
  }
  void sample(uint32_t set, uint64_t index) {
    event(EventKind::kSampleBegin, set, index);
    event(EventKind::kSampleEnd, set, index);
  }
};

UniqueFd trace_in(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

std::vector<TraceRecord> records_in(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  TraceHeader header{};
  std::vector<TraceRecord> records;
  if (read(fd.get(), &header, sizeof header) != sizeof header) return records;
  EXPECT_EQ(header.magic, protocol::kTraceMagic);
  TraceRecord record{};
  while (read(fd.get(), &record, sizeof record) == sizeof record) records.push_back(record);
  return records;
}

TEST(OptimizerRecord, AllIsInTheFileWhenTheEndIsAnswered) {
  const TempFolder folder;
  const std::string path = folder.path() + "/trace";
  const OptimizerProcess process;
  RecordedJob job(process);
  EXPECT_EQ(job.record(trace_in(path).get()), "");
  const uint32_t set = job.dataset(5000);
  for (uint32_t i = 0; i < 5000; ++i) {
    job.sample(set, i);
    if (i % 256 == 255) {
      ASSERT_TRUE(
          eventually([&] { return job.metric(SessionMetric::trace_records) > i || i < 256; }));
    }
  }
  ASSERT_TRUE(job.bye());
  const auto records = records_in(path);
  ASSERT_EQ(records.size(), 5000U);
  for (uint32_t i = 0; i < 5000; ++i) ASSERT_EQ(records[i].sample, i);
}

TEST(OptimizerRecord, SessionsWithOneFileShareItAndTheLastOneClosesIt) {
  const TempFolder folder;
  const std::string path = folder.path() + "/trace";
  const OptimizerProcess process;
  RecordedJob first(process);
  RecordedJob second(process);
  EXPECT_EQ(first.record(trace_in(path).get()), "");
  EXPECT_EQ(second.record(trace_in(path).get()), "");
  const uint32_t set = first.dataset(100);
  ASSERT_EQ(second.dataset(100), set);
  first.sample(set, 1);
  ASSERT_TRUE(eventually([&] { return first.metric(SessionMetric::trace_records) == 1; }));
  second.sample(set, 2);
  ASSERT_TRUE(eventually([&] { return second.metric(SessionMetric::trace_records) == 1; }));
  ASSERT_TRUE(first.bye());
  EXPECT_EQ(records_in(path).size(), 2U);
  second.sample(set, 1);
  ASSERT_TRUE(second.bye());
  const auto records = records_in(path);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[2].job, 0U);
  EXPECT_EQ(records[2].epoch, 1U) << "sample 1 again, without an order";
}

TEST(OptimizerRecord, RefusesWhatIsNoTrace) {
  const TempFolder folder;
  const std::string path = folder.path() + "/trace";
  const OptimizerProcess process;
  {
    const RecordedJob job(process);
    EXPECT_NE(job.record(trace_in(path).get(), 1), "") << "another's token";
    EXPECT_NE(job.record(-1), "");
    EXPECT_EQ(job.record(trace_in(path).get()), "");
    EXPECT_NE(job.record(trace_in(path).get()), "") << "one for each session";
  }
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  const UniqueFd full(open("/dev/full", O_RDWR | O_APPEND | O_CLOEXEC));
  const UniqueFd inside(open(path.c_str(), O_RDWR | O_CLOEXEC));
  const UniqueFd where(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd foreign = trace_in(folder.path() + "/foreign");
  ASSERT_EQ(write(foreign.get(), "something else, longer than that", 32), 32);
  for (const int fd : {writing.get(), full.get(), inside.get(), where.get(), foreign.get()}) {
    RecordedJob other(process);
    EXPECT_NE(other.record(fd), "");
    const uint32_t set = other.dataset(10);
    other.sample(set, 1);
    EXPECT_TRUE(other.bye()) << "and answers still";
  }
  struct stat about {};
  ASSERT_EQ(fstat(foreign.get(), &about), 0);
  EXPECT_EQ(about.st_size, 32);
}

TEST(OptimizerRecord, AWriteThatFailsEndsTheRecordingAlone) {
  const OptimizerProcess process;
  RecordedJob job(process);
  const UniqueFd fd(memfd_create("trace", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(fcntl(fd.get(), F_SETFL, O_APPEND), 0);
  EXPECT_EQ(job.record(fd.get()), "");
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  const uint32_t set = job.dataset(10);
  job.sample(set, 1);
  EXPECT_TRUE(eventually([&] { return job.metric(SessionMetric::trace_lost) == 1; }));
  job.sample(set, 2);
  EXPECT_TRUE(eventually([&] { return job.metric(SessionMetric::trace_lost) == 2; }));
  EXPECT_EQ(job.metric(SessionMetric::trace_records), 0U);
  EXPECT_EQ(job.metric(SessionMetric::events_bad), 0U);
  EXPECT_TRUE(job.bye());
}

TEST(OptimizerRecord, AKilledOptimizerLeavesAGoodTrace) {
  const TempFolder folder;
  const std::string path = folder.path() + "/trace";
  {
    OptimizerProcess process;
    RecordedJob job(process);
    EXPECT_EQ(job.record(trace_in(path).get()), "");
    const uint32_t set = job.dataset(100);
    for (uint32_t i = 0; i < 100; ++i) job.sample(set, i);
    ASSERT_TRUE(eventually([&] { return records_in(path).size() == 100; }));
    process.signal(SIGKILL);
    ASSERT_TRUE(process.wait_end(5));
  }
  // The next one continues behind it, whatever was half written.
  const UniqueFd fd = trace_in(path);
  ASSERT_EQ(write(fd.get(), "half", 4), 4);
  const OptimizerProcess next;
  RecordedJob job(next);
  EXPECT_EQ(job.record(fd.get()), "");
  job.sample(job.dataset(100), 7);
  ASSERT_TRUE(job.bye());
  const auto records = records_in(path);
  ASSERT_EQ(records.size(), 101U);
  EXPECT_EQ(records.back().sample, 7U);
  EXPECT_EQ(records.back().job, 1U) << "how far the first job had got is not known any more";
}

}  // namespace
}  // namespace sluice::test
