// The seam between the planner and storage: asynchronous reads whose bytes are thrown away, since
// all that matters is that they reach the page cache.
//
// One thread uses an engine (the core thread). Short reads are continued inside of the engine; a
// request ends with every byte read, at the end of the file, or with an error.
#pragma once

#include <sys/eventfd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice::optimizer {

struct ReadRequest {
  uint64_t token = 0;  // the caller's, repeated in the result
  int fd = -1;         // must stay open until the result has been reaped
  uint64_t offset = 0;
  uint32_t length = 0;
};

struct ReadResult {
  uint64_t token = 0;
  uint32_t bytes = 0;  // read, even if an error ended it
  int error = 0;       // errno value; ECANCELED after cancel(); 0 if all is read or the file ended
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  // Queues a read. False if the engine is full: reap first.
  virtual bool submit(const ReadRequest& request) = 0;
  // Starts what submit() queued.
  virtual void flush() = 0;
  // Becomes readable when results are waiting.
  virtual int event_fd() const = 0;
  // Makes event_fd() quiet until the next result.
  void acknowledge() const;
  // Off: results make event_fd() readable no longer, and the caller reaps by the clock instead.
  // With a deep queue that saves a wake-up for each of thousands of reads a second.
  virtual void notify(bool on) = 0;
  // Moves finished reads to `results` (appended). Never blocks.
  virtual void reap(std::vector<ReadResult>* results) = 0;
  // Asks for an early end of a read: its result comes all the same, sooner if that can be.
  virtual void cancel(uint64_t token) = 0;
  virtual size_t in_flight() const = 0;
  virtual const char* name() const = 0;
};

inline void Engine::acknowledge() const {
  eventfd_t ignored = 0;
  eventfd_read(event_fd(), &ignored);
}

inline constexpr unsigned kEngineDepth = 256;  // requests in flight over all mounts

// io_uring, or nullptr and *reason if the kernel refuses it.
std::unique_ptr<Engine> make_uring_engine(std::string* reason);
// A pool of threads that call pread. `threads` bounds how many block at a time.
std::unique_ptr<Engine> make_pool_engine(unsigned threads);
// The first unless `no_uring` or refused, else the second.
std::unique_ptr<Engine> make_engine(bool no_uring);

}  // namespace sluice::optimizer
