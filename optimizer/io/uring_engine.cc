#include <liburing.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "optimizer/io/engine.h"
#include "optimizer/io/log.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

constexpr size_t kScratch = 64 << 10;  // bytes: small enough to stay in the processor's cache
constexpr size_t kVectors = 16;        // one submission reads at most 1 MiB
constexpr uint64_t kCancelTag =
    UINT64_MAX;  // user_data of cancellations, whose results are ignored
constexpr int kMaxRetries = 8;

class UringEngine : public Engine {
 public:
  ~UringEngine() override {
    if (ready_) io_uring_queue_exit(&ring_);
  }

  bool open(std::string* reason) {
    scratch_.resize(kScratch);
    io_uring_params params{};
    params.flags = IORING_SETUP_CLAMP;
    const int result = io_uring_queue_init_params(kEngineDepth, &ring_, &params);
    if (result < 0) {
      *reason = strerror(-result);
      return false;
    }
    ready_ = true;
    // Bounded io-wq workers; the default on two cores is 8, which one mount that hangs takes.
    unsigned workers[2] = {kEngineWorkers, kEngineWorkers};
    if (const int limited = io_uring_register_iowq_max_workers(&ring_, workers); limited < 0) {
      *reason = std::string("its workers cannot be limited: ") + strerror(-limited);
      return false;
    }
    event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const int registered = io_uring_register_eventfd(&ring_, event_.get());
    if (registered < 0) *reason = strerror(-registered);
    return registered == 0;
  }

  bool submit(const ReadRequest& request) override {
    if (pending_.size() >= kEngineDepth) return false;
    auto [at, fresh] = pending_.try_emplace(request.token, Pending{request, 0, 0, {}});
    if (!fresh || !queue(&at->second)) {
      if (fresh) pending_.erase(at);
      return false;
    }
    return true;
  }

  void flush() override {
    if (io_uring_sq_ready(&ring_) > 0) io_uring_submit(&ring_);
  }

  int event_fd() const override { return event_.get(); }

  void notify(bool on) override {
    if (on == notified_) return;
    notified_ = on;
    io_uring_cq_eventfd_toggle(&ring_, on);
    __sync_synchronize();  // the kernel must see the flag before the check below
    // Reads that ended while it was off have not signalled the eventfd.
    if (on && io_uring_cq_ready(&ring_) > 0) eventfd_write(event_.get(), 1);
  }

  void reap(std::vector<ReadResult>* results) override {
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const uint64_t token = cqe->user_data;
      const int result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      if (token == kCancelTag) continue;
      const auto at = pending_.find(token);
      if (at == pending_.end()) continue;
      if (!finished(&at->second, result)) continue;
      results->push_back({token, at->second.done, at->second.error});
      pending_.erase(at);
    }
    flush();  // continued short reads
  }

  void cancel(uint64_t token) override {
    io_uring_sqe* sqe = next_sqe();
    if (sqe == nullptr) return;
    io_uring_prep_cancel64(sqe, token, 0);
    io_uring_sqe_set_data64(sqe, kCancelTag);
    flush();
  }

  size_t in_flight() const override { return pending_.size(); }
  const char* name() const override { return "io_uring"; }

 private:
  struct Pending {
    ReadRequest request;
    uint32_t done;
    int retries;
    iovec vectors[kVectors];
    int error = 0;
  };

  io_uring_sqe* next_sqe() {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe != nullptr) return sqe;
    io_uring_submit(&ring_);
    return io_uring_get_sqe(&ring_);
  }

  bool queue(Pending* pending) {
    io_uring_sqe* sqe = next_sqe();
    if (sqe == nullptr) return false;
    // Every vector names the same scratch memory: it is never read, and it stays in the processor's
    // cache, which makes the copy out of the page cache several times cheaper.
    uint32_t left = pending->request.length - pending->done;
    unsigned count = 0;
    while (left > 0 && count < kVectors) {
      const uint32_t step = left < kScratch ? left : static_cast<uint32_t>(kScratch);
      pending->vectors[count++] = {scratch_.data(), step};
      left -= step;
    }
    io_uring_prep_readv(sqe, pending->request.fd, pending->vectors, count,
                        pending->request.offset + pending->done);
    io_uring_sqe_set_data64(sqe, pending->request.token);
    sqe->flags |= IOSQE_ASYNC;  // never reads in the calling thread
    return true;
  }

  // True if the request is over; else it was queued again.
  bool finished(Pending* pending, int result) {
    if (result > 0) {
      pending->done += static_cast<uint32_t>(result);
      if (pending->done >= pending->request.length) return true;
    } else if (result == 0) {
      return true;  // end of the file
    } else if ((result != -EINTR && result != -EAGAIN) || ++pending->retries > kMaxRetries) {
      pending->error = -result;
      return true;
    }
    if (queue(pending)) return false;
    pending->error = EBUSY;
    return true;
  }

  io_uring ring_{};
  bool ready_ = false;
  bool notified_ = true;
  UniqueFd event_;
  std::vector<char> scratch_;
  std::unordered_map<uint64_t, Pending> pending_;  // stable addresses: the kernel reads `vectors`
};

}  // namespace

std::unique_ptr<Engine> make_uring_engine(std::string* reason) {
  auto engine = std::make_unique<UringEngine>();
  if (!engine->open(reason)) return nullptr;
  return engine;
}

std::unique_ptr<Engine> make_engine(bool no_uring) {
  std::string reason = "switched off";
  std::unique_ptr<Engine> engine = no_uring ? nullptr : make_uring_engine(&reason);
  if (engine != nullptr) return engine;
  say(Level::kInfo, "io_uring: {}; reading with threads", reason);
  return make_pool_engine(kEngineWorkers);
}

}  // namespace sluice::optimizer
