// Epochs whose order chunks decide (SLUICE_POLICY=brand or pool with SLUICE_SUBSTITUTE): what a
// job's requests get, as policy/chunks decides, and which copies come with which. Every sample is
// delivered once an epoch, by one of the job's ranks. A job whose samples are neither all whole
// files in chunks nor all records trains in its own order. Core thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "optimizer/services/samples/chunked_samples.h"
#include "optimizer/services/service.h"
#include "policy/chunks/chunk_part.h"
#include "policy/chunks/chunk_supply.h"
#include "policy/util/ids.h"
#include "policy/util/random.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class ChunkDeliveries : Service {
 public:
  ChunkDeliveries(const Service& service, ChunkedSamples* chunked);  // which outlives this
  ChunkDeliveries(const ChunkDeliveries&) = delete;
  ChunkDeliveries& operator=(const ChunkDeliveries&) = delete;

  // Answers a kSelect or kDeliver of a session whose epochs are decided here; other kinds are
  // refused. `memory`: as long as the request says, for a dataset of the session's.
  void handle(const Peer& peer, Session& session, const ImportanceMessage& message,
              UniqueFd memory);
  // Answers jobs that have waited long enough until originals were checked, and sends kWorking to
  // the others that wait. Several times a second.
  void tick();
  // The sample was read in the order of the session `owner`. To be called before the stores evict.
  void on_read(policy::SessionId owner, policy::DatasetId dataset, uint64_t index);

  void remove_process(policy::SessionId session, uint32_t process);
  void remove_session(policy::SessionId session);
  void remove_dataset(policy::DatasetId dataset);

  struct View {
    policy::SessionId session{};
    policy::DatasetId dataset{};
    uint32_t chunks = 0;
    policy::ChunkSupply::Counts counts;
  };
  std::vector<View> views() const;  // of all jobs, and of the last kMostEnded that have ended

  static constexpr uint64_t kMostSamples = 1 << 24;
  static constexpr size_t kMostJobs = 64, kMostEnded = 16;
  static constexpr uint32_t kMostUnknown = 4;  // epochs

 private:
  struct Key {  // of a process that iterates over epochs, as that rank
    policy::SessionId session{};
    policy::DatasetId dataset{};
    uint32_t process = 0, rank = 0, ranks = 1;
    ChunkedSamples::Job job() const { return {session, dataset, uint64_t{process} << 32 | rank}; }
    bool operator<(const Key& other) const {
      return std::tie(session, dataset, process, rank, ranks) <
             std::tie(other.session, other.dataset, other.process, other.rank, other.ranks);
    }
  };
  struct Job {
    // Of the rank's part of the dataset, whose samples they number; null: its order is its own.
    std::unique_ptr<policy::ChunkPart> part;
    std::unique_ptr<policy::ChunkSupply> supply;
    bool records = false;
    uint64_t samples = 0;  // of the dataset
    // Epochs in which the dataset's samples were not all known: they are delivered as requested.
    uint32_t unknown_epochs = 0;
    uint32_t epoch = 0;
    uint64_t requested = 0;  // positions of the epoch
    // Of one of several ranks, whose samplers draw from all samples: numbers of its own in the
    // order in which its positions stand for them.
    std::vector<policy::SampleId> order;
    Random random{0};
    std::vector<bool> held;  // by number: it stays in memory when it is read
  };

  struct Selecting {  // a kSelect that is answered later
    uint64_t connection = 0;
    Key key;
    protocol::Samples request{};
    std::shared_ptr<UniqueFd> memory;
    uint64_t until_ns = 0;  // the folder, or checked originals, are waited for; 0: no deadline
  };

  bool select(uint64_t connection, const Key& key, const Session& session,
              const protocol::Samples& request, UniqueFd memory);
  void opened(const Selecting& selecting);
  void begin_epoch(uint64_t connection);
  bool deliver(const Key& key, Session& session, const protocol::Samples& request, int memory);
  Job make(const Key& key, const Session& session, const protocol::Samples& request);
  bool is_gone(const Key& key, policy::SampleId sample) const;
  bool may_use_files(const Session& session) const;
  bool may_learn(const Key& key, const Session& session, const Job& job) const;
  uint64_t capacity(const Key& key, bool records) const;
  void warn_of_none(const Key& key, const Session& session);
  static View view_of(const Key& key, const Job& job);
  template <typename Test>
  void remove_if(Test test);

  ChunkedSamples* const chunked_;
  bool warned_no_folder_ = false;
  std::map<Key, Job> jobs_;
  std::deque<View> ended_;
  std::map<uint64_t, Selecting> selecting_;  // by connection
};

}  // namespace sluice::optimizer
