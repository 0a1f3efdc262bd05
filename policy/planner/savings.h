// What a job would have waited more without us: the model that docs/report.md states.
//
// For each epoch (or pass), of what was served out of memory by our doing:
//   load      = max(requests x latency / readers, bytes / bandwidth)
//   explained = the same of what was not served, and no more than was waited
//   hidden    = where workers read ahead of the job, the time in which they read and the job
//               did not wait: as much of the load would have gone on meanwhile. Where the kernel
//               does, the same, but it stops when it is a window ahead
//   avoided   = max(0, load + explained - hidden - waited)
// So waiting that nothing explains is taken off what was saved.
//
// Pure: times are arguments, ns; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::optimizer {

// What storage takes for something.
struct Demand {
  double alone_ns = 0;  // requests x latency: one reader, a request at a time
  double link_ns = 0;   // bytes / bandwidth: any number of readers
};

class Savings {
 public:
  void served(Demand demand) { add(&epoch_.served, demand); }
  void missed(Demand demand) { add(&epoch_.missed, demand); }
  // A sample of which it is not known what storage takes for it.
  void unknown() { epoch_.unknown = true; }
  // Somebody reads a sample. `ahead`: of the job, which goes on meanwhile.
  void reads(uint64_t reader, bool ahead, uint64_t now_ns);
  // Somebody has read on in a stream. `passed_ns`: what storage takes for what was passed;
  // `window_ns`: for what the kernel would read ahead of that. The job has waited for `waited_ns`
  // so far.
  struct Step {
    double passed_ns = 0, window_ns = 0;
    uint64_t waited_ns = 0;
  };
  void reads_on(uint64_t reader, bool ahead, uint64_t now_ns, const Step& step);

  // From now on it is another epoch. `waited_ns`, of the job, so far.
  void enter(uint64_t waited_ns);
  // So far. An estimate: it may fall while an epoch is running.
  uint64_t avoided_ns(uint64_t waited_ns) const;

 private:
  struct Epoch {
    uint64_t waited_ns = 0;  // when it began
    uint64_t read_ns = 0;    // when was the last read; 0: none yet
    uint64_t busy_ns = 0;    // it was read for so long
    double kernel_ns = 0;    // the kernel would have read for so long meanwhile
    double lead_ns = 0;      // and would be so far ahead
    uint64_t last_waited_ns = 0;
    Demand served, missed;
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
  double closed_ns_ = 0;  // of epochs before
};

}  // namespace sluice::optimizer
