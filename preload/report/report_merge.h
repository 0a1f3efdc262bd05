// One report for all processes of a job (SLUICE_JOB): ranks, and steps of a script, write the file
// that SLUICE_REPORT names one after the other, each with what the others have left there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// What SLUICE_JOB names, as a number of the report; never 0.
uint64_t job_number();

// What is in the file so far, if another process of this job wrote it. Holds off the job's other
// writers for as long as it lives (flock on the folder, waited for two seconds at most: then, and
// where the file system has no locks, it goes without). No malloc. One thread.
class EarlierReport {
 public:
  explicit EarlierReport(const char* path);
  EarlierReport(const EarlierReport&) = delete;
  EarlierReport& operator=(const EarlierReport&) = delete;
  ~EarlierReport();

  // Of the figure `name`; 0 if there is no such report, or no such figure.
  uint64_t number(const char* name) const;
  // The members "history" and "epochs" as they are there, without the object's end; empty if there
  // are none.
  const char* history(size_t* length) const;
  // Whether the file may be replaced as a whole: there is none, or a regular one.
  bool replaceable() const { return replaceable_; }

 private:
  void read(const char* path);
  void forget();

  long folder_ = -1;  // locked
  long memory_ = -1;  // with the text, ended by a zero
  size_t size_ = 0;   // of the memory; 0: none
  bool replaceable_ = false;
};

}  // namespace sluice::preload
