#include "optimizer/io/executor.h"

#include <algorithm>
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
    uint64_t turn;  // lower: older
    std::function<void()> work;
  };
  struct Mount {
    std::deque<Item> queue;
    unsigned running = 0;
  };
  State(unsigned most, unsigned most_per_mount) : max_threads(most), per_mount(most_per_mount) {}
  const unsigned max_threads, per_mount;
  std::mutex mutex;
  std::condition_variable wake;
  std::map<uint64_t, Mount> mounts;  // of which work waits or runs
  size_t queued = 0;                 // items, of all
  uint64_t turn = 0;                 // of the next
  unsigned threads = 0, idle = 0, busy = 0;
  bool stop = false;
  std::shared_ptr<State> left;  // itself, once the executor has ended with work that is left
  State* next_left = nullptr;

  // Threads beyond the most are for mounts of which nothing runs.
  bool may_run(const Mount& mount) const {
    if (mount.queue.empty()) return false;
    return mount.running == 0 || (mount.running < per_mount && busy < max_threads);
  }

  // REQUIRES: mutex held.
  bool any_may_run() const {
    return queued != 0 &&
           std::ranges::any_of(mounts, [this](const auto& entry) { return may_run(entry.second); });
  }

  // Takes the oldest item of a mount of which nothing runs, or else the oldest whose mount may use
  // another thread, and counts it as running. nullptr: none. REQUIRES: mutex held.
  Mount* pick(std::function<void()>* work) {
    Mount* best = nullptr;
    const auto order = [](const Mount& mount) {
      return std::pair(mount.running != 0, mount.queue.front().turn);
    };
    for (auto& [key, mount] : mounts) {
      if (may_run(mount) && (best == nullptr || order(mount) < order(*best))) best = &mount;
    }
    if (best == nullptr) return nullptr;
    *work = std::move(best->queue.front().work);
    best->queue.pop_front();
    --queued;
    ++busy;
    ++best->running;
    return best;
  }

  // REQUIRES: mutex held.
  void ended(Mount* mount) {
    --busy;
    if (--mount->running != 0 || !mount->queue.empty()) return;
    std::erase_if(mounts, [mount](const auto& entry) { return &entry.second == mount; });
  }

  // For work that was just added. REQUIRES: mutex held.
  bool may_begin_thread(const Mount& mount) const {
    if (threads < max_threads) return true;
    const bool first = mount.running == 0 && mount.queue.size() == 1;
    return first && threads < max_threads + kMostBeyond;
  }

  void work() {
    std::unique_lock lock(mutex);
    std::function<void()> item;
    for (;;) {
      if (stop) break;
      Mount* const mount = pick(&item);
      if (mount == nullptr) {
        ++idle;
        const bool woken = wake.wait_for(lock, kIdle) == std::cv_status::no_timeout;
        --idle;
        if (!woken && queued == 0) break;
        continue;
      }
      const bool more = idle != 0 && any_may_run();
      lock.unlock();
      if (more) wake.notify_one();  // without the mutex, for which the other would wait at once
      try {
        item();
      } catch (const std::exception& error) {  // bad_alloc: only this work is lost
        say(Level::kError, "work on a mount was abandoned: {}", error.what());
      }
      item = nullptr;
      lock.lock();
      ended(mount);
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
  if (state_->queued != 0) {
    static State* all_left = nullptr;  // reachable for good
    state_->left = state_;
    state_->next_left = std::exchange(all_left, state_.get());
  }
  state_->wake.notify_all();
}

void Executor::run(uint64_t mount, std::function<void()> work) {
  const std::shared_ptr<State> held = state_;  // the work may end this executor
  State& state = *held;
  std::unique_lock lock(state.mutex);
  State::Mount& own = state.mounts[mount];
  own.queue.push_back({state.turn++, std::move(work)});
  ++state.queued;
  // An idle thread that was woken for earlier work still counts as idle: of work that comes at once
  // each item needs one.
  if (state.idle < state.queued && state.may_begin_thread(own)) {
    try {
      std::thread([shared = state_] { shared->work(); }).detach();
      ++state.threads;
    } catch (const std::system_error&) {
      // The present threads run it, if there are any.
    }
  }
  const bool wake = state.idle != 0 && state.may_run(own);
  lock.unlock();
  if (wake) state.wake.notify_one();
}

size_t Executor::waiting(uint64_t mount) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->mounts.find(mount);
  return at == state_->mounts.end() ? 0 : at->second.running + at->second.queue.size();
}

}  // namespace sluice::optimizer
