// The interface between planner and storage: asynchronous reads that fill the page cache. The
// bytes read are discarded.
//
// One thread uses an engine (the core thread). The engine continues short reads: a request ends
// with all bytes read, at the end of the file, or with an error.
#pragma once

#include <sys/eventfd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice::optimizer {

struct ReadRequest {
  uint64_t token = 0;  // chosen by the caller, repeated in the result
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
  // Clears event_fd() until the next result.
  void acknowledge() const;
  // Off: results no longer make event_fd() readable, and the caller reaps at intervals instead.
  // With a deep queue that saves a wake-up for each of thousands of reads a second.
  virtual void notify(bool on) = 0;
  // Moves finished reads to `results` (appended). Never blocks.
  virtual void reap(std::vector<ReadResult>* results) = 0;
  // Requests an early end of a read. Its result still arrives, sooner if possible.
  virtual void cancel(uint64_t token) = 0;
  virtual size_t in_flight() const = 0;
  virtual const char* name() const = 0;
};

inline void Engine::acknowledge() const {
  eventfd_t ignored = 0;
  eventfd_read(event_fd(), &ignored);
}

inline constexpr unsigned kEngineDepth = 256;  // requests in flight over all mounts
// Requests that may wait in the kernel at a time, each with a thread of its own. A mount may have a
// quarter of them in flight (kMostOfMount), so that three that hang leave some to the others.
inline constexpr unsigned kEngineWorkers = 192;
inline constexpr unsigned kMostOfMount = kEngineWorkers / 4;

// An engine on io_uring, or nullptr and *reason if the kernel refuses it.
std::unique_ptr<Engine> make_uring_engine(std::string* reason);
// A pool of at most `threads` threads that call preadv.
std::unique_ptr<Engine> make_pool_engine(unsigned threads);
// The io_uring engine unless `no_uring` or refused, else the pool.
std::unique_ptr<Engine> make_engine(bool no_uring);

}  // namespace sluice::optimizer
