// Whether a mechanism (copies of files, records read ahead) does a dataset more harm than good, by
// what its samples took the job's own threads: those that were served by it against those that
// were read as they would be without. Pure: time is an argument. One thread.
//
// A cumulative sum of what was lost, less what was saved, never below 0: savings of long ago do not
// pay for harm that begins now. What is lost within the noise of single samples drifts away.
#pragma once

#include <cstdint>

namespace sluice::optimizer {

class HarmWatch {
 public:
  // A sample was read without the mechanism, and took so long.
  void native(uint64_t took_ns);
  // One was served by it. True: it is off from now on.
  bool served(uint64_t took_ns, uint64_t now_ns);
  // The storage was kept busy for so long by what nobody read. True: as above.
  bool wasted(uint64_t ns, uint64_t now_ns);

  // Off for a while, and tried again later: for twice as long each time that it was in vain.
  bool on(uint64_t now_ns);
  // Lost since it was last found to do no harm; once it is off, what it took to find out.
  uint64_t lost_ns() const { return lost_ns_; }
  // What a sample takes without the mechanism, on average; 0: too few were seen.
  uint64_t native_ns() const { return samples_ < kEnough ? 0 : mean_ns_; }
  uint32_t times_off() const { return times_off_; }

  static constexpr uint64_t kMost = 400'000'000;       // ns lost, of all threads together
  static constexpr uint64_t kMostAgain = 50'000'000;   // likewise, when it is tried again
  static constexpr uint64_t kRest = 20'000'000'000;    // ns until then, the first time
  static constexpr uint32_t kEnough = 8;               // native samples
  static constexpr uint64_t kLongest = 1'000'000'000;  // ns; a longer sample counts as that

 private:
  bool add(uint64_t lost_ns, uint64_t now_ns);

  uint64_t mean_ns_ = 0, samples_ = 0;
  uint64_t lost_ns_ = 0;
  uint64_t off_until_ns_ = 0;  // 0: on
  uint32_t times_off_ = 0;
};

}  // namespace sluice::optimizer
