// Faults on demand: reads that hang, reads that fail. Also the one place that knows whether the
// mount is over, which ends every wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sluice::slowfs {

class Gate {
 public:
  // Bytes after which reads hang, and fail; UINT64_MAX is never.
  Gate(uint64_t hang_after, uint64_t fail_after);

  // Called for each read of `bytes`; waits while reads hang. Returns false if the read is to fail
  // with EIO. Any thread.
  bool pass(uint64_t bytes);

  // Sleeps until `time_ns` on CLOCK_MONOTONIC, or until the mount is over. Returns false if there
  // was nothing to sleep. Any thread.
  bool sleep_until(uint64_t time_ns);

  void hang();     // from now on reads wait
  void release();  // hung reads go on, and hang_after is forgotten
  void stop();     // the mount is over: nothing waits any more

  // The session's descriptor, by which an unmount from outside is noticed. Set before use.
  void watch(int fd) { fd_ = fd; }

  uint64_t hung() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  bool over();

  std::atomic<uint64_t> hang_after_;
  const uint64_t fail_after_;
  int fd_ = -1;
  std::atomic<uint64_t> bytes_{0};  // let through so far
  std::atomic<uint64_t> waiting_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hanging_ = false;  // by signal; guarded by mutex_
};

}  // namespace sluice::slowfs
