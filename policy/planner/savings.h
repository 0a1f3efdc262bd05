// How much longer a job would have waited without Sluice: the model that docs/report.md states.
//
// For each epoch (or pass), of the data that was delivered from memory because of Sluice:
//   load      = max(requests x latency / readers, bytes / bandwidth)
//   explained = the same for data that was not in memory, and no more than the time waited
//   hidden    = where workers read ahead of the job, the time in which they read and the job
//               did not wait: that much of the load would have overlapped anyway. Where the
//               kernel reads ahead, the same, but it stops one window ahead of the reader
//   avoided   = max(0, load + explained - hidden - waited)
// and beside it the storage's time for each file of a command's start that was ready. So waiting
// that nothing explains is subtracted from what was saved.
//
// Pure: times are arguments, ns; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/storage/demand.h"

namespace sluice::policy {

class Savings {
 public:
  void hit(Demand demand) { add(&epoch_.hits, demand); }
  void missed(Demand demand) { add(&epoch_.missed, demand); }
  // The job opened a file that had been opened or fetched ahead of it, which took a thread `ns`.
  void opened(uint64_t ns) { closed_ns_ += static_cast<double>(ns); }
  // A sample for which the storage's time is not known.
  void unknown() { epoch_.unknown = true; }
  // `reader` reads a sample. `ahead`: ahead of the job, which continues meanwhile.
  void reads(uint64_t reader, bool ahead, uint64_t now_ns);
  // `reader` advanced in a stream. `passed_ns`: the storage's time for the bytes it passed;
  // `window_ns`: for the kernel's read-ahead window beyond them; `waited_ns`: how long the job has
  // waited so far.
  struct Step {
    double passed_ns = 0, window_ns = 0;
    uint64_t waited_ns = 0;
  };
  void reads_on(uint64_t reader, bool ahead, uint64_t now_ns, const Step& step);

  // A new epoch begins. `waited_ns`: how long the job has waited so far.
  void enter(uint64_t waited_ns);
  // The estimate so far. It may fall while an epoch is running.
  uint64_t avoided_ns(uint64_t waited_ns) const;

 private:
  struct Epoch {
    uint64_t waited_ns = 0;  // at the start of the epoch
    uint64_t read_ns = 0;    // time of the last read; 0: none yet
    uint64_t busy_ns = 0;    // time during which it was being read
    double kernel_ns = 0;    // of that, the time in which the kernel would have read
    double lead_ns = 0;      // how far ahead of the reader the kernel would be
    uint64_t last_waited_ns = 0;
    Demand hits, missed;
    bool unknown = false;
    bool ahead = false;
    std::vector<uint64_t> readers;  // sorted
  };

  static void add(Demand* sum, Demand demand) {
    sum->alone_ns += demand.alone_ns;
    sum->link_ns += demand.link_ns;
  }
  void count(uint64_t reader, bool ahead, uint64_t gap_ns, uint64_t now_ns);
  double avoided(uint64_t waited_ns) const;

  Epoch epoch_;
  double closed_ns_ = 0;  // of earlier epochs, and of files that were opened ahead
};

}  // namespace sluice::policy
