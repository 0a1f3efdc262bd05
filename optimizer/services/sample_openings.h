// Opens the files of samples ahead of their readers, where originals are read: those of the samples
// that come next whose data is in the page cache. What is read ahead of its reader by more than a
// few seconds was open then, and has been closed since. Core thread only; files are opened by
// openings.h's threads.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "optimizer/services/openings.h"
#include "policy/folders/open_pace.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class SampleOpenings : Service {
 public:
  // `openings` outlives this.
  SampleOpenings(const Service& service, Openings* openings);
  SampleOpenings(const SampleOpenings&) = delete;
  SampleOpenings& operator=(const SampleOpenings&) = delete;

  // As Openings::wanted(), of a file that is read ahead now: 0, too, where its reader is not near,
  // or as many are open as the job takes in time.
  unsigned wanted(policy::SessionId session, policy::SampleFileId file) const;
  // Opens what comes next for jobs that have taken files, or begun an epoch. With each turn.
  void look(uint64_t now_ns);
  // For all jobs that go on reading. Several times a second.
  void tick(uint64_t now_ns);
  void remove_session(policy::SessionId session) { jobs_.erase(session); }

 private:
  struct Job {
    policy::OpenPace pace;
    std::set<policy::SampleFileId> near, opening;
    // Not to be opened before this time: just taken, or not offered.
    std::map<policy::SampleFileId, uint64_t> not_before_ns;
    bool due = true;
    uint64_t next_ns = 0;  // not filled before
    uint64_t taken = 0;    // JobOrders::taken() when it was filled
  };

  void fill(policy::SessionId session, Job* job, uint64_t now_ns);
  void withdraw_read(policy::SessionId session, const Job& job);
  void look_up_again(policy::SessionId session, std::span<const policy::SampleFileId> files);
  void open(policy::SessionId session, Job* job, policy::SampleFileId file, std::string path);
  void opened(policy::SessionId session, policy::SampleFileId file, const std::string& path,
              OpenedFile result);
  void gone(policy::SessionId session, const std::string& path, const Openings::Gone& how);

  Openings* const openings_;
  std::map<policy::SessionId, Job> jobs_;
  uint64_t orders_ = 0;  // JobOrders::changes() that were seen
};

}  // namespace sluice::optimizer
