// What is taken for waiting at faults of an observed mapping.
#include "policy/streams/fault_wait.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "optimizer/io/thread_times.h"

namespace sluice {
namespace {

using policy::fault_wait_ns;
using policy::ThreadTime;

TEST(FaultWait, IsTheTimeOffTheProcessorOfTheThreadWithTheMostFaults) {
  const std::vector<ThreadTime> before = {{1, 10, 500}, {2, 10, 500}, {3, 10, 500}};
  const std::vector<ThreadTime> after = {{1, 11, 500}, {2, 90, 800}, {3, 10, 1500}};
  EXPECT_EQ(fault_wait_ns(before, after, 1000), 700u);
}

TEST(FaultWait, IsNoneOfAThreadThatRanAllTheTime) {
  const std::vector<ThreadTime> before = {{1, 10, 500}}, after = {{1, 20, 1600}};
  EXPECT_EQ(fault_wait_ns(before, after, 1000), 0u);
}

TEST(FaultWait, IsNoneWithoutFaultsAndOfThreadsThatWereNotThere) {
  const std::vector<ThreadTime> before = {{1, 10, 500}}, after = {{1, 10, 500}, {2, 70, 0}};
  EXPECT_EQ(fault_wait_ns(before, after, 1000), 0u);
  EXPECT_EQ(fault_wait_ns({}, after, 1000), 0u);
}

TEST(FaultWait, IsNoneOfAThreadWhoseNumberWasGivenAgain) {
  const std::vector<ThreadTime> before = {{1, 10, 500}}, after = {{1, 2, 100}};
  EXPECT_EQ(fault_wait_ns(before, after, 1000), 0u);
}

TEST(ThreadTimes, CountFaultsAndTimeOfThisProcess) {
  const std::vector<ThreadTime> before = optimizer::thread_times(getpid());
  ASSERT_FALSE(before.empty());
  std::vector<char> pages(16 << 20);  // each page is zeroed: a fault
  const std::vector<ThreadTime> after = optimizer::thread_times(getpid());
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after[0].tid, static_cast<uint32_t>(getpid()));
  EXPECT_GT(after[0].faults, before[0].faults);
  EXPECT_GT(after[0].busy_ns, before[0].busy_ns);
  EXPECT_TRUE(optimizer::thread_times(0).empty());
}

}  // namespace
}  // namespace sluice
