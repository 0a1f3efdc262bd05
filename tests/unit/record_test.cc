// Recording samples: which records come of begins and ends, and the file that they go to.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "optimizer/trace/recorder.h"
#include "optimizer/trace/trace_file.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

using policy::DatasetId;
using policy::SessionId;
namespace {

using protocol::TraceHeader;
using protocol::TraceRecord;

constexpr uint64_t kReader = uint64_t{7} << 32 | 9;

Recorder::Origin origin(uint32_t dataset, uint32_t owner, std::optional<uint32_t> epoch,
                        std::string_view name = "a", uint64_t samples = 100) {
  return {name, samples, DatasetId{dataset}, SessionId{owner}, epoch};
}

// One sample from its begin to its end.
TraceRecord given(Recorder& recorder, uint64_t index, const Recorder::Origin& from,
                  uint64_t bytes = 5) {
  EXPECT_TRUE(recorder.begin(kReader, index, from));
  const auto record = recorder.end(kReader, from.dataset, index, bytes);
  EXPECT_TRUE(record);
  return record.value_or(TraceRecord{});
}

TEST(Recorder, EpochsComeFromTheOrderAndNeverGoBack) {
  Recorder recorder;
  EXPECT_EQ(given(recorder, 3, origin(1, 4, 0), 77).bytes, 77U);
  ASSERT_TRUE(recorder.begin(kReader, 5, origin(1, 4, 0)));
  EXPECT_EQ(given(recorder, 3, origin(1, 4, 1)).epoch, 1U);
  const auto late = recorder.end(kReader, DatasetId{1}, 5, 1);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->epoch, 1U) << "a reader whose reports are late";
  EXPECT_EQ(late->sample, 5U);
}

TEST(Recorder, WithoutAnOrderARepeatBeginsAnEpoch) {
  Recorder recorder;
  std::vector<uint32_t> epochs;
  for (const uint64_t index : {0, 2, 1, 2, 0, 1, 1}) {
    epochs.push_back(given(recorder, index, origin(1, 0, std::nullopt)).epoch);
  }
  EXPECT_EQ(epochs, (std::vector<uint32_t>{0, 0, 0, 1, 1, 1, 2}));
  const auto ordered = given(recorder, 1, origin(1, 6, 2));
  EXPECT_EQ(ordered.job, 0U) << "its order came late: still the same job";
  EXPECT_EQ(ordered.epoch, 2U);
}

TEST(Recorder, DatasetsAndOrdersAreJobsAndKeepTheirSamplesApart) {
  Recorder recorder(3);
  EXPECT_EQ(given(recorder, 99, origin(1, 4, 0)).sample, 99U);
  const auto second = given(recorder, 0, origin(2, 4, 0, "b", 10));
  EXPECT_EQ(second.sample, 100U);
  EXPECT_EQ(second.job, 4U);
  const auto rank = given(recorder, 7, origin(1, 5, 0));
  EXPECT_EQ(rank.sample, 7U) << "the same dataset";
  EXPECT_EQ(rank.job, 5U);
  EXPECT_EQ(given(recorder, 7, origin(9, 8, 0)).sample, 7U) << "declared again";
}

TEST(Recorder, EndsWithoutABeginningAreNoRecords) {
  Recorder recorder;
  EXPECT_FALSE(recorder.end(kReader, DatasetId{1}, 3, 1));
  ASSERT_TRUE(recorder.begin(kReader, 3, origin(1, 4, 0)));
  EXPECT_FALSE(recorder.end(kReader + 1, DatasetId{1}, 3, 1));
  EXPECT_FALSE(recorder.end(kReader, DatasetId{2}, 3, 1));
  ASSERT_TRUE(recorder.begin(kReader, 100, origin(1, 4, 0)));
  EXPECT_FALSE(recorder.end(kReader, DatasetId{1}, 100, 1)) << "no such sample";
  recorder.remove_process(7);
  EXPECT_FALSE(recorder.end(kReader, DatasetId{1}, 3, 1));
}

TEST(Recorder, SaysWhenATraceHasNoRoom) {
  Recorder recorder(protocol::kTraceMaxJobs - 1);
  EXPECT_EQ(given(recorder, 0, origin(1, 4, 0)).job, protocol::kTraceMaxJobs - 1);
  EXPECT_FALSE(recorder.begin(kReader, 0, origin(1, 5, 0)));
  EXPECT_NE(recorder.problem(), nullptr);
  Recorder large;
  EXPECT_EQ(given(large, 1, origin(1, 4, 0, "a", UINT32_MAX), UINT64_MAX).bytes,
            protocol::kTraceMaxBytes);
  EXPECT_FALSE(large.begin(kReader, 0, origin(2, 4, 0, "b", 1)));
}

UniqueFd memory(int more = O_APPEND) {
  UniqueFd fd(memfd_create("trace", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(fcntl(fd.get(), F_SETFL, more), 0);
  return fd;
}

off_t size_of(const UniqueFd& fd) { return lseek(fd.get(), 0, SEEK_END); }

constexpr off_t kHeader = sizeof(TraceHeader);
constexpr off_t kRecord = sizeof(TraceRecord);

TEST(TraceFile, IsARegularFileOpenForReadingAndAppending) {
  EXPECT_EQ(identify_trace(memory().get()).problem, "");
  EXPECT_NE(identify_trace(memory(0).get()).problem, "");
  for (const char* path : {"/dev/full", "/dev/null"}) {
    const UniqueFd fd(open(path, O_RDWR | O_APPEND | O_CLOEXEC));
    EXPECT_EQ(identify_trace(fd.get()).problem, "a trace must be a regular file");
  }
  const UniqueFd reading(open("/proc/self/exe", O_RDONLY | O_APPEND | O_CLOEXEC));
  EXPECT_NE(identify_trace(reading.get()).problem, "");
  const UniqueFd folder(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_NE(identify_trace(folder.get()).problem, "");
  EXPECT_NE(identify_trace(-1).problem, "");
}

TEST(TraceFile, GetsItsHeaderOnceAndRecordsAtItsEnd) {
  const UniqueFd fd = memory();
  EXPECT_EQ(prepare_trace(fd.get()).problem, "");
  EXPECT_EQ(size_of(fd), kHeader);
  const std::array<TraceRecord, 2> records = {TraceRecord{10, 0, 0, 1, 0},
                                              TraceRecord{20, 0, 6, 2, 0}};
  EXPECT_EQ(append_records(fd.get(), records), "");
  EXPECT_EQ(size_of(fd), kHeader + 2 * kRecord);
  ASSERT_EQ(write(fd.get(), "cut short", 9), 9);
  const PreparedTrace again = prepare_trace(fd.get());
  EXPECT_EQ(again.problem, "");
  EXPECT_EQ(again.jobs, 7U);
  EXPECT_EQ(size_of(fd), kHeader + 2 * kRecord) << "what was cut short is gone";
  TraceRecord last{};
  ASSERT_EQ(pread(fd.get(), &last, sizeof last, kHeader + kRecord), kRecord);
  EXPECT_EQ(memcmp(&last, &records[1], sizeof last), 0);
}

TEST(TraceFile, SomethingElseIsLeftAlone) {
  const UniqueFd fd = memory();
  ASSERT_EQ(write(fd.get(), "my thesis, the only copy", 24), 24);
  EXPECT_NE(prepare_trace(fd.get()).problem, "");
  EXPECT_EQ(size_of(fd), 24);
}

TEST(TraceFile, AFullFileIsOneLine) {
  const UniqueFd fd = memory();
  ASSERT_EQ(prepare_trace(fd.get()).problem, "");
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  const TraceRecord record{1, 0, 0, 1, 0};
  const std::string problem = append_records(fd.get(), {&record, 1});
  EXPECT_NE(problem.find("cannot be written"), std::string::npos);
  EXPECT_EQ(problem.find('\n'), std::string::npos);
  EXPECT_EQ(size_of(fd), kHeader);
}

}  // namespace
}  // namespace sluice::optimizer
