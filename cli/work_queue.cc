#include "cli/work_queue.h"

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::cli {

void WorkQueue::add_last(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) waiting_.push_back(std::move(work));
  changed_.notify_one();
}

void WorkQueue::add_next(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) waiting_.push_front(std::move(work));
  changed_.notify_one();
}

void WorkQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  waiting_.clear();
  changed_.notify_all();
}

void WorkQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || busy_ == 0; });
    if (waiting_.empty()) break;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    ++busy_;
    lock.unlock();
    work();
    lock.lock();
    --busy_;
  }
  changed_.notify_all();  // nothing is left: the others end, too
}

void WorkQueue::run(unsigned threads) {
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < threads) others.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // a limit of processes: fewer threads do it as well
  }
  work();
  for (std::thread& thread : others) thread.join();
}

}  // namespace sluice::cli
