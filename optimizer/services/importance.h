// Importance of samples: the values that jobs report, the samples that an epoch fetches, and the
// policies that retain the important ones. Core thread only; epochs are chosen on other threads.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "optimizer/io/executor.h"
#include "optimizer/services/samples/chunk_deliveries.h"
#include "optimizer/services/samples/chunked_samples.h"
#include "optimizer/services/service.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Importance : Service {
 public:
  // Both outlive this.
  Importance(const Service& service, ChunkedSamples* chunked, ChunkDeliveries* chunks);

  void handle(const Peer& peer, const ImportanceMessage& message, std::vector<UniqueFd> fds);
  // Answers one request for an epoch that has been chosen. Once per turn: short requests of other
  // jobs are handled in between.
  void begin_epoch();
  // Sends kWorking to jobs whose epoch is still being chosen. Several times a second.
  void tick();
  // Copies are retained by the policy that a session asks for, if any; by importance, while all
  // sessions that may stage select by it; else by known orders.
  void choose_policy();
  // `process` of `session` has read a sample in the order of the session `owner`: the priorities by
  // which samples are retained change. To be called before the stores evict.
  void on_read(const Session& session, const Session& owner, uint32_t process,
               policy::DatasetId dataset, uint64_t index);

  void remove_dataset(policy::DatasetId dataset);

 private:
  struct Chosen {
    uint64_t connection = 0;
    policy::ImportanceBook::Requester requester;
    std::shared_ptr<policy::EpochChoice> choice;  // nullptr: its rank has ended
    std::shared_ptr<UniqueFd> memory;             // receives the answer
  };

  bool report(const policy::ImportanceBook::Requester& requester, const protocol::Samples& request,
              int fd);
  void answer(uint64_t connection, bool good);
  // True: the answer is sent later.
  bool select(const Peer& peer, Session* session,
              const policy::ImportanceBook::Requester& requester, const protocol::Samples& request,
              UniqueFd memory);
  bool deliver(Session& session, const policy::ImportanceBook::Requester& requester,
               const protocol::Samples& request, int fd);
  void look_for_packages(const Session& session, policy::DatasetId dataset);
  void remove_packages(policy::DatasetId dataset);
  uint64_t capacity(policy::DatasetId dataset);
  void judge_benefit(Session* session, const policy::ImportanceBook::Requester& requester);
  double storage_ns(policy::DatasetId dataset, uint64_t samples);
  uint64_t job_of(const Session& session, uint64_t group) const;

  ChunkedSamples* const chunked_;
  std::set<policy::DatasetId> looking_;           // for packages
  std::map<policy::DatasetId, uint64_t> looked_;  // last, with so many samples' places known
  ChunkDeliveries* const chunks_;                 // which answer the requests of some sessions
  std::set<uint64_t> choosing_;                   // connections that wait for an answer to kSelect
  std::deque<Chosen> chosen_;
  Executor choosers_{2, 2};
};

}  // namespace sluice::optimizer
