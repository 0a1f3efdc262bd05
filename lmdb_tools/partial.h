// A result that is created completely or not at all: it is made in OUT.partial/result and renamed
// to OUT. Never modifies an existing OUT.
#pragma once

#include <string>

#include "protocol/unique_fd.h"

namespace sluice::lmdb {

class Partial {
 public:
  // Begins, or continues what an interrupted run of the same job left. `job` is text that differs
  // whenever the result would. Fails if OUT exists, if OUT.partial belongs to another job, or if
  // another process is working on it.
  Partial(std::string out, const std::string& job);
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;

  const std::string& result() const { return result_; }  // the folder to fill

  // Renames the result to OUT, and removes the rest. REQUIRES: its files are on disk.
  void publish();

  // Removes everything that was created.
  void discard();

 private:
  void begin(const std::string& job);
  void lock_and_compare(const std::string& job);

  const std::string out_, folder_, result_, job_file_;
  UniqueFd lock_;
};

}  // namespace sluice::lmdb
