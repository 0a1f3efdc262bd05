#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "optimizer/io/engine.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

constexpr size_t kScratch = 64 << 10;
constexpr int kVectors = 16;

// Shared with the threads, which may outlive the engine: one that hangs in a mount's read cannot
// be joined, so threads are detached and the last one frees this.
struct Shared {
  std::mutex mutex;
  std::condition_variable work;
  std::deque<ReadRequest> queue;
  std::vector<ReadResult> done;
  std::unordered_set<uint64_t> cancelled;
  unsigned idle = 0, threads = 0;
  bool stop = false, notify = true;
  UniqueFd event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

ReadResult read_all(const ReadRequest& request, Shared& shared) {
  char scratch[kScratch];
  ReadResult result{request.token, 0, 0};
  while (result.bytes < request.length) {
    {
      const std::lock_guard lock(shared.mutex);
      if (shared.cancelled.count(request.token) != 0) {
        result.error = ECANCELED;
        break;
      }
    }
    // One call for all remaining bytes, since the kernel reads as much at once as the call
    // requests; every vector is the same small buffer, for the reason in uring_engine.cc.
    iovec vectors[kVectors];
    int count = 0;
    for (size_t left = request.length - result.bytes; left > 0 && count < kVectors; ++count) {
      vectors[count] = {scratch, std::min(left, kScratch)};
      left -= vectors[count].iov_len;
    }
    const ssize_t got =
        preadv(request.fd, vectors, count, static_cast<off_t>(request.offset + result.bytes));
    if (got > 0) {
      result.bytes += static_cast<uint32_t>(got);
    } else if (got == 0) {
      break;
    } else if (errno != EINTR) {
      result.error = errno;
      break;
    }
  }
  return result;
}

void worker(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    ++shared->idle;
    shared->work.wait(lock, [&] { return shared->stop || !shared->queue.empty(); });
    --shared->idle;
    if (shared->stop) return;
    const ReadRequest request = shared->queue.front();
    shared->queue.pop_front();
    lock.unlock();
    const ReadResult result = read_all(request, *shared);
    lock.lock();
    shared->cancelled.erase(request.token);
    shared->done.push_back(result);
    if (shared->notify) eventfd_write(shared->event.get(), 1);
  }
}

class PoolEngine : public Engine {
 public:
  explicit PoolEngine(unsigned threads) : threads_(threads) {}

  ~PoolEngine() override {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
    shared_->work.notify_all();
  }

  bool submit(const ReadRequest& request) override {
    const std::lock_guard lock(shared_->mutex);
    if (in_flight_ >= kEngineDepth) return false;
    if (shared_->idle <= shared_->queue.size() && shared_->threads < threads_) {
      try {
        std::thread(worker, shared_).detach();
        ++shared_->threads;
      } catch (const std::system_error&) {
        if (shared_->threads == 0) return false;
      }
    }
    shared_->queue.push_back(request);
    ++in_flight_;
    shared_->work.notify_one();
    return true;
  }

  void flush() override {}
  int event_fd() const override { return shared_->event.get(); }

  void notify(bool on) override {
    const std::lock_guard lock(shared_->mutex);
    if (on && !shared_->notify && !shared_->done.empty()) eventfd_write(shared_->event.get(), 1);
    shared_->notify = on;
  }

  void reap(std::vector<ReadResult>* results) override {
    const std::lock_guard lock(shared_->mutex);
    in_flight_ -= shared_->done.size();
    results->insert(results->end(), shared_->done.begin(), shared_->done.end());
    shared_->done.clear();
  }

  void cancel(uint64_t token) override {
    const std::lock_guard lock(shared_->mutex);
    auto& queue = shared_->queue;
    for (auto at = queue.begin(); at != queue.end(); ++at) {
      if (at->token != token) continue;
      queue.erase(at);
      shared_->done.push_back({token, 0, ECANCELED});
      eventfd_write(shared_->event.get(), 1);
      return;
    }
    shared_->cancelled.insert(token);
  }

  size_t in_flight() const override { return in_flight_; }
  const char* name() const override { return "threads"; }

 private:
  const unsigned threads_;
  size_t in_flight_ = 0;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace

std::unique_ptr<Engine> make_pool_engine(unsigned threads) {
  return std::make_unique<PoolEngine>(threads);
}

}  // namespace sluice::optimizer
