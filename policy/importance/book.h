// The importance values of each job, the samples that each epoch fetches, and the sample that is
// delivered for each request. Pure; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy/importance/choice.h"
#include "policy/importance/icache_system.h"
#include "policy/importance/retention_priorities.h"
#include "policy/importance/selector.h"
#include "policy/importance/values.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// A job's settings (protocol/importance.h).
struct ImportanceOptions {
  std::string selector = "loss";
  SelectionSettings selection;
  bool seed_given = false;  // false: the seed is the job's own
  double h_share = kHShare;
  enum class Substitution : uint8_t { kNever, kSameLabel, kAny };
  Substitution substitution = Substitution::kNever;
  double most_substituted = kMostSubstituted;
  bool packages = true;  // where set_packages() was called
};

// Outcomes of the requests of all epochs, counted when the samples are read.
struct DeliveryCounts {
  std::array<uint64_t, kDeliveryKinds> by_kind{};  // by DeliveryKind
  uint64_t of(DeliveryKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
};

class ImportanceBook {
 public:
  ImportanceBook() = default;
  ImportanceBook(const ImportanceBook&) = delete;
  ImportanceBook& operator=(const ImportanceBook&) = delete;

  // The origin of a call. Importance values belong to a job: the processes that train one model.
  // What an epoch fetches, receives and retains belongs to a rank: a process that iterates over
  // epochs. The caller assigns all numbers; a session remains in the job that it was in first.
  struct Requester {
    uint64_t job = 0;
    SessionId session{};
    uint32_t process = 0;
    DatasetId dataset{};
    uint64_t samples = 0;  // of the dataset
  };

  // Records the importance value of a sample of the job's dataset, and its label unless that is
  // kUnknownLabel. False: refused, see ImportanceValues::observe().
  bool report(const Requester& requester, uint64_t sample, double value,
              uint32_t label = kUnknownLabel);

  // Selects the samples that epoch `epoch` of the rank fetches, from the values known now, in three
  // steps: request(), choose() on any thread, begin(). `candidates`: by sample, 0 for samples
  // outside the rank's part; empty: all are in it. nullptr: too many samples, ranks or datasets, or
  // the rank's previous choice has neither begun nor been dropped. A choice to which only the
  // caller still holds a reference has lost its rank and need not be computed.
  std::shared_ptr<EpochChoice> request(const Requester& requester, uint32_t epoch,
                                       const ImportanceOptions& options,
                                       std::vector<uint8_t> candidates);
  // Begins the rank's epoch with the choice. `capacity`: bytes of the dataset that may be retained.
  // False: the rank does not exist any more, or does not wait for this choice.
  bool begin(const Requester& requester, const std::shared_ptr<EpochChoice>& choice,
             uint64_t capacity);
  // Cancels the choice: the rank may request another.
  void drop(const Requester& requester, const std::shared_ptr<EpochChoice>& choice);

  // The rank's benefit from a cache that several share (BenefitEstimate): used from the next epoch
  // that begins. No effect before the rank's first request().
  void set_benefit(const Requester& requester, double benefit);

  // Whether `first` is the rank's next position in `epoch`, which begin() has begun. If so, counts
  // `count` positions as requested: deliver() may be called for them.
  bool follows(const Requester& requester, uint32_t epoch, uint64_t first, uint64_t count);
  // Samples leave memory for reasons beyond the lists: budgets shrink, files change, jobs share.
  // Drops samples that were to be retained, have been read and are not in memory, so that no later
  // request counts on them. Checks at most kMostChecked samples a call, in turn: a few
  // milliseconds.
  void drop_absent(DatasetId dataset, const std::function<bool(SampleId sample)>& in_memory);
  // The sample to deliver for `requested`, the next position of the rank's epoch. `bytes`: a
  // sample's size in memory; 0: it cannot be retained and is not substituted. REQUIRES:
  // `requested` is below requester.samples, and follows() was true.
  using BytesOf = std::function<uint64_t(SampleId sample)>;
  Delivery deliver(const Requester& requester, SampleId requested, const BytesOf& bytes);

  // From the dataset's next epoch on L-samples are read in packages, which are these chunks, where
  // any other may substitute. Until remove_dataset(). REQUIRES: as many samples.
  void set_packages(DatasetId dataset, std::shared_ptr<const ChunkMap> map,
                    std::vector<uint32_t> bytes);
  // The samples of the package that must be read for what deliver() has decided last about the
  // dataset, that one first. Empty: none must.
  std::span<const SampleId> read_in_package(DatasetId dataset) const;
  // Of one that a package brings. REQUIRES: deliver() was called.
  float priority_of_brought(DatasetId dataset, SampleId sample) const;
  bool has_packages(DatasetId dataset) const { return packages_.contains(dataset); }

  // Whether another job selects from a dataset that the session selects from.
  bool shares(SessionId session) const;
  // The number of the session's ranks on the dataset, and whether the process is one of them.
  size_t ranks(SessionId session, DatasetId dataset) const;
  bool is_rank(SessionId session, uint32_t process, DatasetId dataset) const;
  // The session has read the sample, in the rank `process` or a worker of it (ignored where there
  // is one rank). `retained`: its data has been in memory since its last read; only then a promised
  // hit counts as a hit. Returns the retention priorities that change: higher is retained first,
  // 0 is not worth retaining.
  std::span<const RetentionPriorities::SamplePriority> on_read(SessionId session, uint32_t process,
                                                               DatasetId dataset, uint64_t sample,
                                                               bool retained);
  // The number of datasets retained by these priorities: they share the memory.
  size_t datasets() const { return systems_.size(); }

  // The rank has ended; its session's view still includes its counts.
  void remove_process(SessionId session, uint32_t process);
  // The session has ended. A job's importance values are discarded with its last session.
  void remove_session(SessionId session);
  void remove_dataset(DatasetId dataset);

  struct View {  // of a session, its ranks together
    SessionId session{};
    DatasetId dataset{};
    uint32_t epoch = 0;
    uint64_t reported = 0, refused = 0;  // values
    uint64_t known = 0;                  // samples with a value, from any session of the job
    uint64_t selected = 0;               // in `epoch`, the latest that began
    uint64_t all_offered = 0, all_selected = 0;  // candidates and selected, of all epochs
    DeliveryCounts deliveries;
    uint64_t broken = 0;     // promised as hits and not in memory when read; counted as misses
    uint64_t displaced = 0;  // samples replaced by substitutes and not trained in that epoch
    double benefit = 1;
    uint64_t swaps = 0;  // of the dataset's H-heap
  };
  std::vector<View> views() const;

  static constexpr uint64_t kMostSamples = 1 << 27;  // of a dataset: half a gigabyte of values
  static constexpr uint64_t kMostAll = 1 << 28;      // of all jobs and datasets together
  // Of a dataset from which samples are selected. All other requests wait while an epoch begins,
  // 0.1 s with so many samples (icache_begin_ms in docs/benchmarks.md).
  static constexpr uint64_t kMostSelected = 4'000'000;
  static constexpr uint64_t kMostSelectedAll = 1 << 24;  // by all ranks: 0.4 to 1.5 GB
  static constexpr size_t kMostRanks = 256;              // of a session and dataset
  static constexpr size_t kMostChecked = 1 << 15;
  static constexpr uint64_t kMostRequested = 4;  // positions of an epoch, in multiples of samples

 private:
  struct Known {  // shared by the sessions of a job
    explicit Known(uint64_t samples) : values(static_cast<uint32_t>(samples)) {}
    ImportanceValues values;
    std::vector<uint32_t> labels;  // by sample; empty: any may substitute
    std::optional<uint64_t> seed;  // of selections: the first rank's, for all
  };
  struct Rank {
    uint32_t number = 0;  // its job number in the ICacheSystem
    std::shared_ptr<Selector> selector;
    std::shared_ptr<EpochChoice> choice;  // requested, not begun yet
    bool begun = false;                   // an epoch has begun
    RetentionPriorities priorities;
    uint32_t epoch = 0;      // the latest that began
    uint64_t requested = 0;  // positions of it that were requested
  };
  struct Entry {
    uint64_t job = 0;
    std::shared_ptr<Known> known;    // outlives the ranks, which refer to its labels
    std::map<uint32_t, Rank> ranks;  // by process
    DeliveryCounts deliveries;
    uint64_t broken = 0;
    uint64_t reported = 0, refused = 0, selected = 0;
    uint64_t all_offered = 0, all_selected = 0;
    uint64_t displaced = 0, swaps = 0;  // of ranks that have ended
    uint32_t epoch = 0;
  };
  using Key = std::pair<SessionId, DatasetId>;  // session and dataset
  // nullptr: too many.
  Entry* entry(const Requester& requester);
  // The rank that waits for the choice; nullptr: none.
  Rank* waiting_rank(const Requester& requester, const std::shared_ptr<EpochChoice>& choice);
  Rank* rank(const Requester& requester, Entry* own, const ImportanceOptions& options);
  uint64_t displaced(DatasetId dataset, const Rank& rank) const;
  void end_rank(DatasetId dataset, Entry* own, std::map<uint32_t, Rank>::iterator rank);
  void drop_unused(DatasetId dataset);

  std::map<Key, Entry> entries_;
  std::map<DatasetId, std::unique_ptr<ICacheSystem>> systems_;  // by dataset
  struct Packages {
    std::shared_ptr<const ChunkMap> map;
    std::vector<uint32_t> bytes;
  };
  std::map<DatasetId, Packages> packages_;
  uint32_t next_number_ = 1;
  size_t checked_ = 0;  // where drop_absent() continues
};

}  // namespace sluice::policy
