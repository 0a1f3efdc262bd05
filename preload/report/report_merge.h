// One report for all processes of a job (SLUICE_JOB): ranks, and steps of a script, write the file
// that SLUICE_REPORT names one after the other, each merging the metrics already there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// A hash of SLUICE_JOB, which identifies the job in the report; never 0.
uint64_t job_number();

// The file's present contents, if another process of this job wrote them. Excludes the job's other
// writers while this object exists, by flock on the folder. Waits for the lock two seconds at most;
// then, and where the file system has no locks, continues without it. No malloc. One thread.
class EarlierReport {
 public:
  explicit EarlierReport(const char* path);
  EarlierReport(const EarlierReport&) = delete;
  EarlierReport& operator=(const EarlierReport&) = delete;
  ~EarlierReport();

  // The value of the metric `name`; 0 if there is no such report, or no such metric.
  uint64_t number(const char* name) const;
  // The text of the members from "history" on, what write_history() writes, without the end of the
  // outermost object; empty if there are none.
  const char* history(size_t* length) const;
  // Whether the file may be replaced as a whole: it does not exist, or is a regular file.
  bool replaceable() const { return replaceable_; }

 private:
  void read(const char* path);
  void forget();

  long folder_ = -1;  // locked
  long memory_ = -1;  // holds the text, zero-terminated
  size_t size_ = 0;   // of the memory; 0: none
  bool replaceable_ = false;
};

}  // namespace sluice::preload
