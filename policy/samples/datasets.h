// All datasets, and what is known of their samples. Pure; one thread.
//
// A dataset has one id for all sessions: a job's workers may be sessions of their own, and two jobs
// over the same data share what is learned.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy/samples/sample_set.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

// Bytes that all tables and orders of a book take together, and may take.
struct BookMemory {
  uint64_t held = 0, most = uint64_t{512} << 20;
  bool more_holders = false;  // something may hold bytes that held none at the last check
  bool refused = false;       // a sample was not learned for lack of room
};

class Datasets {
 public:
  struct Dataset {
    Dataset(std::string text, uint64_t samples) : name(std::move(text)), set(samples) {}
    std::string name;
    SampleSet set;
    std::set<SessionId> sessions;
    uint64_t last_use = 0;    // ascending with each use of any dataset
    bool unfollowed = false;  // it does not fit
    // By kind of samples, ranges and whole files:
    bool off[2] = {false, false};    // not prefetched
    bool trial[2] = {false, false};  // the control group is not
  };
  static constexpr size_t kMaxNames = 4096;
  static constexpr uint32_t kMaxId = (1U << 24) - 1;

  explicit Datasets(BookMemory* memory) : memory_(*memory) {}

  // The dataset of that name and size, new or known. The session uses it until it leaves.
  uint32_t use(SessionId session, const std::string& name, uint64_t samples);
  // What must be removed before use() of that name: beyond kMaxNames, some of the least recently
  // used datasets of the session that has the most.
  std::vector<uint32_t> surplus_names(const std::string& name, uint64_t samples) const;
  void leave(SessionId session);  // datasets that no other session uses are removed
  void remove(uint32_t dataset);
  void touch(uint32_t dataset);  // it is in use
  // Discards what was learned. `for_good`: it is not followed any more.
  void clear(uint32_t dataset, bool for_good);

  const std::map<uint32_t, Dataset>& all() const { return datasets_; }
  // nullptr: no such dataset; likewise one that is not the session's, or is not followed. Valid
  // until it is removed.
  const Dataset* find(uint32_t dataset) const;
  const Dataset* followed(SessionId session, uint32_t dataset) const;
  const std::set<SessionId>& sessions_of(uint32_t dataset) const;
  bool uses(SessionId session, uint32_t dataset) const {
    return sessions_of(dataset).count(session) != 0;
  }
  // Datasets that only this session uses: they are removed when it leaves.
  std::vector<uint32_t> only_of(SessionId session) const;
  // Whether, for each sample of all datasets of the session, its parts were seen in this run or
  // declared by the job, and `test` is true of them. False without a dataset.
  bool all_samples(SessionId session,
                   const std::function<bool(std::span<const Extent>)>& test) const;

  // A session reports that the sample consists of `parts`. False: no such sample, or a dataset that
  // is not the session's.
  bool locate(SessionId session, uint32_t dataset, uint64_t index, std::vector<Extent> parts,
              Source source);
  // The same on behalf of all sessions. No effect if there is no such dataset.
  void learn(uint32_t dataset, uint64_t index, std::vector<Extent> parts, Source source);
  void refine(uint32_t dataset, uint64_t index, std::vector<Extent> parts);  // as SampleSet's
  void drop_guesses(uint32_t dataset);

  // Disables prefetching for the dataset's samples that are whole files (or, not `files`, ranges).
  void set_off(uint32_t dataset, bool files, bool off);
  // During a trial the control group (JobOrders::is_control()) is not prefetched.
  void set_trial(uint32_t dataset, bool files, bool trial);

 private:
  Dataset* find_mutable(uint32_t dataset);
  template <typename Change>
  void change(Dataset& dataset, Change change);

  BookMemory& memory_;
  uint32_t next_id_ = 1;
  uint64_t uses_ = 0;
  std::map<uint32_t, Dataset> datasets_;
  std::map<std::pair<std::string, uint64_t>, uint32_t> by_name_;  // and size
};

}  // namespace sluice::optimizer
