// A model of one mount, learned from Sluice's own reads: bandwidth, latency, and how many blocks to
// have in flight. Pure: time is an argument; one thread.
//
// Bandwidth is the highest rate of delivery in slots of 10 ms or more without idle time, over the
// last seconds under load. A machine whose processors are busy finds more arrived in one of them
// than the link delivers: where the depth is memory that others could use it follows from the
// highest rate of 100 ms or more, or since the link was idle. Latency is the lowest of the last
// seconds. Their product is what the link holds; depth is twice that, plus a reserve for times in
// which this process is not scheduled. At the start depth doubles from slot to slot until the rate
// stops growing.
#pragma once

#include <array>
#include <cstdint>

#include "policy/storage/demand.h"
#include "policy/storage/request_cost.h"

namespace sluice::policy {

class StorageModel {
 public:
  // What the caller stores for a read from on_issue() to on_done().
  struct Sample {
    uint64_t issued_ns = 0;
    bool full = false;    // as many reads were in flight as depth allows
    unsigned others = 0;  // other reads in flight
  };

  enum class Rate : uint8_t { kHighest, kSustained };
  // `block` bytes a read; depth stays within [kMinDepth, max_depth], and follows from `rate`.
  StorageModel(uint32_t block, unsigned max_depth, Rate rate = Rate::kHighest)
      : block_(block), max_depth_(max_depth), rate_(rate), mean_bytes_(block) {}

  Sample on_issue(uint64_t now_ns, unsigned in_flight_before);
  // `now_ns`: when the read ended, which may be a while ago. `timed`: its duration counts for the
  // storage's latency.
  // `took_ns`: what the storage took, if known without the time in which the read waited for a
  // thread or for the caller to notice its end; 0: it is not.
  void on_done(const Sample& sample, uint32_t bytes, uint64_t now_ns, bool timed = true,
               uint64_t took_ns = 0);

  // The link may be busy for so long with what this model knows nothing of: so much more is to be
  // in flight. Until the next call, or for kBusyForNs: that may end at any time.
  void set_busy(uint64_t ns, uint64_t now_ns) { busy_ = {ns, now_ns + kBusyForNs}; }
  static constexpr uint64_t kBusyForNs = 2'000'000'000;
  // A reader waits for data that was not prefetched: reduce the depth for a moment.
  void on_stall(uint64_t now_ns) { stalled_until_ns_ = now_ns + kStallNs; }

  unsigned depth(uint64_t now_ns) const;
  uint32_t block() const { return block_; }
  double bandwidth() const {
    return bandwidth_.now > bandwidth_.before ? bandwidth_.now : bandwidth_.before;
  }
  uint64_t latency_ns() const { return least_of(latency_); }  // of one block; 0: not known
  bool starting() const { return start_.on; }
  // The usual time of a read that waits for no other read of Sluice. latency_ns() may be lower:
  // that of a block that was half cached.
  double usual_ns() const;
  const RequestCost& cost() const { return cost_; }

  // The time that `bytes` of a sequential run would take without Sluice: a reader has one request
  // of the kernel's read-ahead size in flight at a time.
  Demand demand(uint64_t bytes) const;
  // The same for data that is read by itself: it takes whole requests.
  Demand record_demand(uint64_t bytes) const;
  // The same through a mapping without kernel read-ahead (MADV_RANDOM): one request for each page.
  Demand page_demand(uint64_t bytes) const;

  static constexpr unsigned kMinDepth = 4;

 private:
  static constexpr uint64_t kStallNs = 5'000'000;

  static constexpr unsigned kQuiet = 8;  // reads in flight

  // A running estimate of a quantile.
  struct Usual {
    double ns = 0;
    unsigned count = 0;
    void add(double took_ns);
  };

  // An extreme of this window and of the last one.
  template <typename T>
  struct Windowed {
    T now = 0, before = 0;
    uint64_t turn_ns = 0;
  };

  // Of what was seen: `now` and `before`; 0: nothing.
  double sustained() const {
    return sustained_.now > sustained_.before ? sustained_.now : sustained_.before;
  }
  static uint64_t least_of(const Windowed<uint64_t>& least);
  static void lower(Windowed<uint64_t>* least, uint64_t took_ns, uint64_t now_ns);
  double most_of_short_ns() const;
  double lone_ns() const;  // of one page
  uint64_t of_one_block(uint64_t took_ns, uint32_t bytes) const;
  void begin_slot(uint64_t now_ns);
  void end_slot(uint64_t now_ns);

  const uint32_t block_;
  const unsigned max_depth_;
  const Rate rate_;
  struct {  // the depth grows while that pays
    bool on = true;
    unsigned depth = 2 * kMinDepth;
    unsigned plateau = 0;
    double best = 0;  // highest rate so far
  } start_;
  struct Slot {
    uint64_t ns = 0, bytes = 0, requests = 0;
    bool full = false;  // some read of it found the pipe full
  } slot_;
  struct {  // consecutive slots, up to kLongSlotNs
    uint64_t ns = 0, bytes = 0;
    bool from_idle = true;  // nothing was in flight when it began
  } long_slot_;
  RequestCost cost_;
  double mean_bytes_;                // of a recent request
  Windowed<double> bandwidth_;       // the highest, bytes per second
  Windowed<double> sustained_;       // likewise, of long slots
  Windowed<uint64_t> latency_;       // the lowest, of reads of a block or more
  Windowed<uint64_t> short_;         // the lowest, of shorter ones
  std::array<Usual, kQuiet> usual_;  // by the number of other reads in flight
  uint64_t stalled_until_ns_ = 0;
  struct {
    uint64_t ns = 0, until_ns = 0;
  } busy_;
};

}  // namespace sluice::policy
