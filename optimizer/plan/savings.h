// What a job would have waited more without us: the model that docs/report.md states.
//
// For each epoch (or pass), of what was served out of memory by our doing:
//   load      = max(requests x latency / readers, bytes / bandwidth)
//   explained = the same of what was not served, and no more than was waited
//   hidden    = where reading is ahead of the job (workers, the kernel's read-ahead), the time in
//               which it read and the job did not wait: as much of the load would have gone on
//               meanwhile
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
  // Somebody reads. `ahead`: of the job, which goes on meanwhile. Reading is taken to have gone on
  // since the time before, but for no longer than `most_ns`.
  void reads(uint64_t reader, bool ahead, uint64_t now_ns, uint64_t most_ns = UINT64_MAX);

  // From now on it is another epoch. `waited_ns`, of the job, so far.
  void enter(uint64_t waited_ns);
  // So far. An estimate: it may fall while an epoch is running.
  uint64_t avoided_ns(uint64_t waited_ns) const;

 private:
  struct Epoch {
    uint64_t waited_ns = 0;  // when it began
    uint64_t read_ns = 0;    // when was the last read; 0: none yet
    uint64_t busy_ns = 0;    // it was read for so long
    Demand served, missed;
    bool unknown = false;
    bool ahead = false;
    std::vector<uint64_t> readers;  // sorted
  };

  static void add(Demand* sum, Demand demand) {
    sum->alone_ns += demand.alone_ns;
    sum->link_ns += demand.link_ns;
  }
  double avoided(uint64_t waited_ns) const;

  Epoch epoch_;
  double closed_ns_ = 0;  // of epochs before
};

}  // namespace sluice::optimizer
