// What samples matter to each job, which of them its epochs fetch, and who is served for whom.
// Pure; one thread.
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
#include "policy/importance/keep_ranks.h"
#include "policy/importance/selector.h"
#include "policy/importance/values.h"

namespace sluice::optimizer {

// What a job asked for (protocol/importance.h).
struct ImportanceOptions {
  std::string selector = "loss";
  SelectionSettings selection;
  bool seed_given = false;  // else it is the job's own
  double h_share = kHShare;
  enum class StandIns : uint8_t { kNever, kSameLabel, kAny };
  StandIns stand_ins = StandIns::kNever;
  double most_substituted = kMostSubstituted;
};

// What requests came to when they were read, of all epochs.
struct ServedCounts {
  std::array<uint64_t, kServedKinds> by_kind{};  // by Served
  uint64_t of(Served how) const { return by_kind[static_cast<size_t>(how)]; }
};

class ImportanceBook {
 public:
  ImportanceBook() = default;
  ImportanceBook(const ImportanceBook&) = delete;
  ImportanceBook& operator=(const ImportanceBook&) = delete;

  // Who tells or asks. What samples matter is known by job: those who train one model. What an
  // epoch fetched, was served and keeps is a rank's own, a process that goes through epochs. All
  // are numbered by the caller; a session stays of the job that it was of first.
  struct Who {
    uint64_t job = 0;
    uint32_t session = 0, process = 0;
    uint32_t dataset = 0;
    uint64_t samples = 0;  // of the dataset
  };

  // A sample of the job's dataset mattered so much; `label`, or kUnknownLabel. False: refused, see
  // ImportanceValues::observe().
  bool report(const Who& who, uint64_t sample, double value, uint32_t label = kUnknownLabel);

  // Which samples epoch `epoch` of the rank fetches, from what is known now: ask(), choose() on any
  // thread, and begin(). `candidates`: by sample, 0 for those that are not the rank's to train;
  // empty: all are. nullptr: there are too many ranks and datasets, or the rank has asked before
  // and somebody is at it. A choice that is nobody's but the caller's need not be made any more:
  // its rank is gone.
  std::shared_ptr<EpochChoice> ask(const Who& who, uint32_t epoch, const ImportanceOptions& options,
                                   std::vector<uint8_t> candidates);
  // The rank's epoch begins with what was chosen. `capacity`: bytes that may stay in memory of the
  // dataset. False: the rank that asked is gone.
  bool begin(const Who& who, const std::shared_ptr<EpochChoice>& choice, uint64_t capacity);
  // Nobody waits for the choice any more: the rank may ask again.
  void drop(const Who& who, const std::shared_ptr<EpochChoice>& choice);

  // What the rank gains by the cache, where several share it (BenefitEstimate): from its next epoch
  // on. Without effect before its first.
  void set_benefit(const Who& who, double benefit);

  // Whether the rank's questions have come to that position of the epoch, which begin() has begun,
  // and to no other. If so, serve() may be called for `count` positions from there on.
  bool follows(const Who& who, uint32_t epoch, uint64_t first, uint64_t count);
  // Not only the ranks' lists decide what stays: budgets shrink, files change, jobs share. What was
  // to stay, has been read and is not in memory is dropped, so that no later request counts on it.
  // Of many, some with each call: at most kMostLooked, a few milliseconds.
  void forget_lost(uint32_t dataset, const std::function<bool(SampleId sample)>& in_memory);
  // Who is served for `requested`, the next position of the rank's epoch. `bytes`: what samples
  // take of the memory; 0: nothing that could be kept, such a sample is served itself. REQUIRES:
  // `requested` is below who.samples, and follows() was true.
  using BytesOf = std::function<uint64_t(SampleId sample)>;
  Answer serve(const Who& who, SampleId requested, const BytesOf& bytes);

  // Another job selects from a dataset that the session selects from.
  bool shares(uint32_t session) const;
  // Ranks of the session that go through the dataset, and whether the process is one.
  size_t ranks(uint32_t session, uint32_t dataset) const;
  bool is_rank(uint32_t session, uint32_t process, uint32_t dataset) const;
  // The session has read the sample, in a process that is the rank `process`, or a worker of it; it
  // does not matter where there is one rank. `retained`: its data has been in memory since it was
  // read last; a hit that was promised counts as one only then. What that changes of what samples
  // are worth keeping, higher is more, 0 is nothing.
  std::span<const KeepRanks::Rank> on_read(uint32_t session, uint32_t process, uint32_t dataset,
                                           uint64_t sample, bool retained);
  // Datasets whose samples are kept by these ranks: they share the memory.
  size_t datasets() const { return systems_.size(); }

  // The rank goes; what its session came to is still in the views.
  void forget_process(uint32_t session, uint32_t process);
  // What samples matter is forgotten with the last session of the job.
  void forget_session(uint32_t session);
  void forget_dataset(uint32_t dataset);

  struct View {  // of a session, its ranks together
    uint32_t session = 0, dataset = 0, epoch = 0;
    uint64_t reported = 0, refused = 0;  // values
    uint64_t known = 0;                  // samples of which a value is, by anybody of the job
    uint64_t selected = 0;               // for `epoch`, the last that was asked for
    uint64_t all_offered = 0, all_selected = 0;  // candidates and selected, of all epochs
    ServedCounts served;
    uint64_t broken = 0;     // promised as hits and not in memory when read; counted as misses
    uint64_t displaced = 0;  // samples in whose place others were trained, and that were not
    double benefit = 1;
    uint64_t swaps = 0;  // of the H-heap, by the dataset
  };
  std::vector<View> views() const;

  static constexpr uint64_t kMostSamples = 1 << 27;  // of a dataset: half a gigabyte of values
  static constexpr uint64_t kMostAll = 1 << 28;      // of all jobs and datasets together
  // Of a dataset that anybody selects from. Everybody who asks something else waits while an epoch
  // begins, 0.1 s with so many (icache_begin_ms in docs/benchmarks.md).
  static constexpr uint64_t kMostSelected = 4'000'000;
  static constexpr uint64_t kMostSelectedAll = 1 << 24;  // by all ranks: 0.4 to 1.5 GB
  static constexpr size_t kMostRanks = 256;              // of a session and dataset
  static constexpr size_t kMostLooked = 1 << 15;
  static constexpr uint64_t kMostAsked = 4;  // times the samples, of an epoch's positions

 private:
  struct Known {  // by all of a job
    explicit Known(uint64_t samples) : values(static_cast<uint32_t>(samples)) {}
    ImportanceValues values;
    std::vector<uint32_t> labels;  // by sample; empty: any stands in for any
    std::optional<uint64_t> seed;  // of selections: the first rank's
  };
  struct Rank {
    uint32_t number = 0;  // its job of the system
    std::shared_ptr<Selector> selector;
    std::shared_ptr<EpochChoice> choice;  // that somebody is at
    bool begun = false;                   // an epoch
    KeepRanks kept;
    uint32_t epoch = 0;  // that was selected for last
    uint64_t asked = 0;  // positions of it
  };
  struct Entry {
    uint64_t job = 0;
    std::shared_ptr<Known> known;    // outlives the ranks, which refer to its labels
    std::map<uint32_t, Rank> ranks;  // by process
    ServedCounts served;
    uint64_t broken = 0;
    uint64_t reported = 0, refused = 0, selected = 0;
    uint64_t all_offered = 0, all_selected = 0;
    uint64_t displaced = 0, swaps = 0;  // of ranks that are gone
    uint32_t epoch = 0;
  };
  using Key = std::pair<uint32_t, uint32_t>;  // session and dataset
  // nullptr: too many.
  Entry* entry(const Who& who);
  // Whose choice it is. nullptr: it is gone.
  Rank* asker(const Who& who, const std::shared_ptr<EpochChoice>& choice);
  Rank* rank(const Who& who, Entry* own, const ImportanceOptions& options);
  uint64_t displaced(uint32_t dataset, const Rank& rank) const;
  void end_rank(uint32_t dataset, Entry* own, std::map<uint32_t, Rank>::iterator rank);
  void drop_unused(uint32_t dataset);

  std::map<Key, Entry> entries_;
  std::map<uint32_t, std::unique_ptr<ICacheSystem>> systems_;  // by dataset
  uint32_t next_number_ = 1;
  size_t looked_ = 0;  // forget_lost() goes on there
};

}  // namespace sluice::optimizer
