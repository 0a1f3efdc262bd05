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

#include "policy/samples/declared_files.h"
#include "policy/samples/sample_set.h"
#include "policy/util/ids.h"

namespace sluice::policy {

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
    DeclaredFiles declared;
    // By kind of samples, ranges and whole files:
    bool off[2] = {false, false};    // not prefetched
    bool trial[2] = {false, false};  // the control group is not
  };
  static constexpr size_t kMaxNames = 4096;
  static constexpr uint32_t kMaxId = (1U << 24) - 1;

  explicit Datasets(BookMemory* memory) : memory_(*memory) {}

  // The dataset of that name and size, new or known. The session uses it until it leaves.
  DatasetId use(SessionId session, const std::string& name, uint64_t samples);
  // What must be removed before use() of that name: beyond kMaxNames, some of the least recently
  // used datasets of the session that has the most.
  std::vector<DatasetId> surplus_names(const std::string& name, uint64_t samples) const;
  void leave(SessionId session);  // datasets that no other session uses are removed
  void remove(DatasetId dataset);
  void touch(DatasetId dataset);  // it is in use
  // Discards what was learned. `for_good`: it is not followed any more.
  void clear(DatasetId dataset, bool for_good);

  const std::map<DatasetId, Dataset>& all() const { return datasets_; }
  // nullptr: no such dataset; likewise one that is not the session's, or is not followed. Valid
  // until it is removed.
  const Dataset* find(DatasetId dataset) const;
  const Dataset* followed(SessionId session, DatasetId dataset) const;
  const std::set<SessionId>& sessions_of(DatasetId dataset) const;
  bool uses(SessionId session, DatasetId dataset) const {
    return sessions_of(dataset).count(session) != 0;
  }
  // Datasets that only this session uses: they are removed when it leaves.
  std::vector<DatasetId> only_of(SessionId session) const;
  // Whether, for each sample of all datasets of the session, its parts were seen in this run or
  // declared by the job, and `test` is true of them. False without a dataset.
  bool all_samples(SessionId session,
                   const std::function<bool(std::span<const Extent>)>& test) const;

  // A session reports that the sample consists of `parts`. False: no such sample, or a dataset that
  // is not the session's.
  bool locate(SessionId session, DatasetId dataset, uint64_t index, std::vector<Extent> parts,
              Source source);
  // The same on behalf of all sessions. No effect if there is no such dataset.
  void learn(DatasetId dataset, uint64_t index, std::vector<Extent> parts, Source source);
  void refine(DatasetId dataset, uint64_t index, std::vector<Extent> parts);  // as SampleSet's
  void drop(DatasetId dataset, Source source);                                // as SampleSet's

  // A worker begins the sample, whose files were read ahead.
  void was_offered(DatasetId dataset, uint64_t index, uint64_t now_ns);
  // A sample was read from a copy of a file.
  void opened(DatasetId dataset);
  // What the job declared of the dataset is wrong, by what was seen since it was last refuted.
  bool refuted(DatasetId dataset);

  // Disables prefetching for the dataset's samples that are whole files (or, not `files`, ranges).
  void set_off(DatasetId dataset, bool files, bool off);
  // During a trial the control group (JobOrders::is_control()) is not prefetched.
  void set_trial(DatasetId dataset, bool files, bool trial);

 private:
  Dataset* find_mutable(DatasetId dataset);
  template <typename Change>
  void change(Dataset& dataset, Change change);

  BookMemory& memory_;
  uint32_t next_id_ = 1;
  uint64_t uses_ = 0;
  std::map<DatasetId, Dataset> datasets_;
  std::map<std::pair<std::string, uint64_t>, DatasetId> by_name_;  // and size
};

}  // namespace sluice::policy
