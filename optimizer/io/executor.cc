#include "optimizer/io/executor.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

constexpr auto kIdle = std::chrono::seconds(10);  // a thread without work ends after this
constexpr unsigned kMostBeyond = 64;              // threads beyond the most, for other mounts

}  // namespace

// Shared with the threads, which are detached: one that hangs cannot be joined.
struct Executor::State : std::enable_shared_from_this<Executor::State> {
  struct Item {
    uint64_t mount;
    std::function<void()> work;
  };
  State(unsigned most, unsigned most_per_mount) : max_threads(most), per_mount(most_per_mount) {}
  const unsigned max_threads, per_mount;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Item> queue;
  std::map<uint64_t, unsigned> running;
  unsigned threads = 0, idle = 0;
  bool stop = false;
  std::shared_ptr<State> left;  // itself, once the executor has ended with work that is left
  State* next_left = nullptr;

  unsigned running_at(uint64_t mount) const {
    const auto at = running.find(mount);
    return at == running.end() ? 0 : at->second;
  }

  // Takes the oldest item of a mount of which nothing runs, or else the oldest whose mount may use
  // another thread. REQUIRES: mutex held.
  bool pick(Item* item) {
    auto best = queue.end();
    for (auto at = queue.begin(); at != queue.end(); ++at) {
      const unsigned runs = running_at(at->mount);
      if (runs == 0 || (best == queue.end() && runs < per_mount)) best = at;
      if (runs == 0) break;
    }
    if (best == queue.end()) return false;
    *item = std::move(*best);
    queue.erase(best);
    return true;
  }

  // REQUIRES: mutex held; the mount's work is in the queue.
  bool may_begin_thread(uint64_t mount) const {
    return threads < max_threads || (threads < max_threads + kMostBeyond && running_at(mount) == 0);
  }

  void work() {
    std::unique_lock lock(mutex);
    Item item;
    for (;;) {
      if (stop) break;
      if (!pick(&item)) {
        ++idle;
        const bool woken = wake.wait_for(lock, kIdle) == std::cv_status::no_timeout;
        --idle;
        if (!woken && queue.empty()) break;
        continue;
      }
      ++running[item.mount];
      lock.unlock();
      try {
        item.work();
      } catch (const std::exception& error) {  // bad_alloc: only this work is lost
        say(Level::kError, "work on a mount was abandoned: {}", error.what());
      }
      item.work = nullptr;
      lock.lock();
      if (--running[item.mount] == 0) running.erase(item.mount);
      if (!queue.empty()) wake.notify_one();
    }
    --threads;
  }
};

Executor::Executor(unsigned threads, unsigned per_mount)
    : state_(std::make_shared<State>(threads, per_mount)) {}

Executor::~Executor() {
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  // What has not begun is not released either: it may own files, and closing these may block.
  if (!state_->queue.empty()) {
    static State* all_left = nullptr;  // reachable for good
    state_->left = state_;
    state_->next_left = std::exchange(all_left, state_.get());
  }
  state_->wake.notify_all();
}

void Executor::run(uint64_t mount, std::function<void()> work) {
  const std::lock_guard lock(state_->mutex);
  state_->queue.push_back({mount, std::move(work)});
  // An idle thread that was woken for earlier work still counts as idle: of work that comes at once
  // each item needs one.
  if (state_->idle < state_->queue.size() && state_->may_begin_thread(mount)) {
    try {
      std::thread([state = state_] { state->work(); }).detach();
      ++state_->threads;
    } catch (const std::system_error&) {
      // The present threads run it, if there are any.
    }
  }
  state_->wake.notify_one();
}

size_t Executor::waiting(uint64_t mount) const {
  const std::lock_guard lock(state_->mutex);
  const auto running = state_->running.find(mount);
  size_t sum = running == state_->running.end() ? 0 : running->second;
  for (const auto& item : state_->queue) sum += item.mount == mount ? 1 : 0;
  return sum;
}

}  // namespace sluice::optimizer
