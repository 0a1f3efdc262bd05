// What the reads that we made say about one mount: bandwidth, latency, and how many blocks to
// keep in flight. Pure: time is an argument; one thread.
//
// Bandwidth is the highest rate of delivery in slots of 10 ms or more without idle time, over the
// last seconds under load. Latency is the lowest of the last seconds. Their product is what the
// link holds; depth is twice that and a reserve for the moments in which nobody schedules us.
// Until the rate stops growing depth doubles slot after slot.
#pragma once

#include <array>
#include <cstdint>

#include "policy/planner/request_cost.h"
#include "policy/planner/savings.h"

namespace sluice::optimizer {

class StorageModel {
 public:
  // What a read must remember from its start.
  struct Sample {
    uint64_t issued_ns = 0;
    bool full = false;    // the pipe was as full as depth allows
    unsigned others = 0;  // that were under way
  };

  // `block` bytes a read; depth stays within [kMinDepth, max_depth].
  StorageModel(uint32_t block, unsigned max_depth)
      : block_(block), max_depth_(max_depth), mean_bytes_(block) {}

  Sample on_issue(uint64_t now_ns, unsigned in_flight_before);
  // `timed`: how long it took says something of the storage's latency.
  void on_done(const Sample& sample, uint32_t bytes, uint64_t now_ns, bool timed = true);

  // The reader waits for data that we have not got: keep out of its way for a moment.
  void on_stall(uint64_t now_ns) { stalled_until_ns_ = now_ns + kStallNs; }

  unsigned depth(uint64_t now_ns) const;
  uint32_t block() const { return block_; }
  double bandwidth() const { return bandwidth_ > bandwidth_old_ ? bandwidth_ : bandwidth_old_; }
  uint64_t latency_ns() const;  // of one block; 0: not known
  bool starting() const { return starting_; }
  // What a read usually takes that waits for no others of ours: the lowest latency may be that of
  // what was half cached.
  double usual_ns() const;
  const RequestCost& cost() const { return cost_; }

  // What `bytes` of a sequential run would take without us: a reader has one request of the
  // kernel's read-ahead size under way at a time.
  Demand demand(uint64_t bytes) const;
  // The same of something that is read for itself: it takes whole requests.
  Demand record_demand(uint64_t bytes) const;
  // The same through a mapping of which the kernel reads nothing ahead (MADV_RANDOM): a request for
  // each page.
  Demand page_demand(uint64_t bytes) const;

  static constexpr unsigned kMinDepth = 4;

 private:
  static constexpr uint64_t kStallNs = 5'000'000;

  static constexpr unsigned kQuiet = 8;  // reads under way

  // A quantile of what is seen, which it follows.
  struct Usual {
    double ns = 0;
    unsigned count = 0;
    void add(double took_ns);
  };

  double lone_ns() const;  // of one page
  void begin_slot(uint64_t now_ns);
  void end_slot(uint64_t now_ns);

  const uint32_t block_;
  const unsigned max_depth_;
  bool starting_ = true;
  unsigned start_depth_ = 2 * kMinDepth;
  unsigned plateau_ = 0;
  double best_ = 0;  // highest rate while starting
  uint64_t slot_ns_ = 0, slot_bytes_ = 0, slot_requests_ = 0;
  RequestCost cost_;
  double mean_bytes_;                         // of a request, of late
  bool slot_full_ = false;                    // some read of the slot saw the pipe full
  double bandwidth_ = 0, bandwidth_old_ = 0;  // this window's and the last's, bytes per second
  uint64_t latency_ = 0, latency_old_ = 0;
  std::array<Usual, kQuiet> usual_;  // of a read beside so many others
  uint64_t bandwidth_turn_ns_ = 0, latency_turn_ns_ = 0;
  uint64_t stalled_until_ns_ = 0;
};

}  // namespace sluice::optimizer
