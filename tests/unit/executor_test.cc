// The threads for calls that may block: work that comes at once is done at once.
#include "optimizer/io/executor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace sluice::optimizer {
namespace {

constexpr auto kLimit = std::chrono::seconds(60);
constexpr unsigned kThreads = 8;

// Work that begins and waits until it may end. Shared: what did not begin may outlive a test.
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  unsigned begun = 0, ended = 0;
  bool may_end = false;

  void attend() {
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    changed.wait_for(lock, kLimit, [this] { return may_end; });
    ++ended;
    changed.notify_all();
  }
  bool wait_for_begun(unsigned count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kLimit, [&] { return begun >= count; });
  }
  bool end(unsigned count) {
    std::unique_lock lock(mutex);
    may_end = true;
    changed.notify_all();
    return changed.wait_for(lock, kLimit, [&] { return ended >= count; });
  }
};

// All the work of a start came while the thread that had read its list was idle: no other thread
// was made for it, and one did the work of 32.
TEST(Executor, ABurstOfWorkAfterAnIdleThreadRunsOnAllThreads) {
  Executor executor(kThreads, kThreads);
  const auto first = std::make_shared<Meeting>();
  executor.run(0, [first] { first->attend(); });
  ASSERT_TRUE(first->end(1));
  while (executor.waiting(0) != 0) std::this_thread::yield();
  const auto burst = std::make_shared<Meeting>();
  for (unsigned i = 0; i < kThreads; ++i) executor.run(0, [burst] { burst->attend(); });
  EXPECT_TRUE(burst->wait_for_begun(kThreads));
  EXPECT_TRUE(burst->end(kThreads));
}

TEST(Executor, AMountThatHangsLeavesThreadsToOthers) {
  Executor executor(4, 2);
  const auto hanging = std::make_shared<Meeting>(), other = std::make_shared<Meeting>();
  for (int i = 0; i < 20; ++i) executor.run(1, [hanging] { hanging->attend(); });
  ASSERT_TRUE(hanging->wait_for_begun(2));
  for (int i = 0; i < 2; ++i) executor.run(2, [other] { other->attend(); });
  EXPECT_TRUE(other->wait_for_begun(2));
  EXPECT_TRUE(other->end(2));
  {
    const std::lock_guard lock(hanging->mutex);
    EXPECT_EQ(hanging->begun, 2U);
  }
  EXPECT_TRUE(hanging->end(20));
}

// Several servers died, whose mounts took all threads together.
TEST(Executor, MountsThatHangLeaveOneThreadToEachOther) {
  constexpr unsigned kHung = 4, kEach = 2, kOthers = 5;
  Executor executor(kHung * kEach, kEach);
  const auto hanging = std::make_shared<Meeting>(), others = std::make_shared<Meeting>();
  for (uint64_t mount = 1; mount <= kHung; ++mount) {
    for (unsigned i = 0; i < 3 * kEach; ++i) executor.run(mount, [hanging] { hanging->attend(); });
  }
  ASSERT_TRUE(hanging->wait_for_begun(kHung * kEach));
  for (uint64_t mount = 0; mount < kOthers; ++mount) {
    executor.run(100 + mount, [others] { others->attend(); });
  }
  EXPECT_TRUE(others->wait_for_begun(kOthers));
  EXPECT_TRUE(others->end(kOthers));
  {
    const std::lock_guard lock(hanging->mutex);
    EXPECT_EQ(hanging->begun, kHung * kEach) << "a hung mount took one of the others' threads";
  }
  EXPECT_TRUE(hanging->end(3 * kHung * kEach));
}

// What hung next took the threads that were meant for mounts of which nothing runs.
TEST(Executor, ThreadsBeyondTheMostAreForMountsThatHaveNone) {
  constexpr unsigned kEach = 4, kHung = 12;
  Executor executor(kEach, kEach);
  const auto hanging = std::make_shared<Meeting>(), other = std::make_shared<Meeting>();
  for (unsigned i = 0; i < kEach; ++i) executor.run(1, [hanging] { hanging->attend(); });
  ASSERT_TRUE(hanging->wait_for_begun(kEach));
  for (uint64_t mount = 2; mount < 2 + kHung; ++mount) {
    for (unsigned i = 0; i < kEach; ++i) executor.run(mount, [hanging] { hanging->attend(); });
  }
  ASSERT_TRUE(hanging->wait_for_begun(kEach + kHung));
  executor.run(100, [other] { other->attend(); });
  ASSERT_TRUE(other->wait_for_begun(1));
  {
    const std::lock_guard lock(hanging->mutex);
    EXPECT_EQ(hanging->begun, kEach + kHung) << "one for each mount beside the first";
  }
  EXPECT_TRUE(other->end(1));
  EXPECT_TRUE(hanging->end(kEach * (1 + kHung)));
}

}  // namespace
}  // namespace sluice::optimizer
