// The sidecar: one core thread that owns all state and blocks only in epoll_wait, one ring reader
// thread per session (sessions/ring_reader.h), and executor threads for calls that a file system
// may block and for long computations. Here its parts are put together, and the order is decided in
// which they work.
#pragma once

#include "optimizer/services/lifetime.h"
#include "optimizer/services/sample_openings.h"
#include "optimizer/services/samples/sample_events.h"
#include "optimizer/services/samples/sample_requests.h"
#include "optimizer/services/scans.h"
#include "optimizer/services/stage/stage_requests.h"
#include "optimizer/services/starts.h"
#include "optimizer/services/status.h"
#include "optimizer/services/streams/sequels.h"
#include "optimizer/services/streams/streams.h"

namespace sluice::optimizer {

class Sidecar {
 public:
  // `seat` must listen and outlive this, which ends when `stop_fd` becomes readable.
  Sidecar(const DaemonOptions& options, Seat* seat, int stop_fd);
  Sidecar(const Sidecar&) = delete;
  Sidecar& operator=(const Sidecar&) = delete;

  // Returns once it is stopped, or no session has existed for the linger time.
  void run();

 private:
  struct Stores {
    Stores(const DaemonOptions& options, const Seat& seat, int stop_fd);
    Base base;
    Files files;
    Plans plans;
    Sessions sessions;
    Recordings recordings;
    Stage stage;
    const Service service;
  };
  struct Locations {
    StoredLocations stored;
    RecordLocator records;
  };
  struct Opened {  // files that are opened ahead
    Openings held;
    SampleOpenings samples;
  };
  struct SampleServices {
    HarmControl harm;
    SampleEvents events;
    SampleRequests requests;
  };

  void turn();
  void pump(uint64_t now_ns);
  void tick(uint64_t now_ns);
  void on_events(Session& session, const std::vector<TakenEvent>& events);
  void on_slot_freed(Session& session, uint32_t slot, uint32_t pid);
  void on_ending(Session& session);
  void on_ended(policy::SessionId session);

  Stores in_;  // what the services work with
  Locations locations_;
  Limits limits_;
  struct {
    ChunkedSamples chunked;
    ChunkDeliveries chunks;
    Importance importance;
  } epochs_;  // what they read
  Histories histories_;
  Transfers transfers_;
  Streams streams_;
  Sequels sequels_;
  Scans scans_;
  Opened opened_;
  Starts starts_;
  SampleServices samples_;
  StageRequests stage_requests_;
  Lifetime lifetime_;
  Status status_;
};

}  // namespace sluice::optimizer
