// Which records of large files are retained in the page cache when a job's memory does not hold all
// of them: the stage's decision (copy_room.h), for samples that are ranges of files. A replacement
// policy chooses; pages of no retained sample may be dropped once read. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "policy/planner/page_owners.h"
#include "policy/replacement/policy.h"
#include "policy/replacement/table.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// Whole pages of a file.
struct FilePages {
  FileId file{};
  Range range;
  bool operator==(const FilePages&) const = default;
};

class RecordPlan {
 public:
  // From now on so many bytes of the dataset may be retained, by that policy. `samples`: those
  // below are expected, more may come.
  void track(DatasetId dataset, PolicyKind policy, uint64_t samples, uint64_t bytes);
  // Another policy, of the same capacity, for a dataset that is tracked: it decides again on what
  // was retained, and knows its importance if the policy before did. What is evicted is appended to
  // `freed`.
  void change_policy(DatasetId dataset, PolicyKind policy, uint64_t samples,
                     std::vector<FilePages>* freed);
  // Changes the capacity of a tracked dataset. What is evicted is appended to `freed`.
  void set_capacity(DatasetId dataset, uint64_t bytes, std::vector<FilePages>* freed);
  // The sample was read, and takes these pages. Pages that may now be dropped, of this sample or
  // another, are appended to `freed`. REQUIRES: the dataset is tracked.
  void on_read(SessionId session, DatasetId dataset, SampleId sample, std::vector<FilePages> pages,
               std::vector<FilePages>* freed);
  // The known part of the order in which the dataset will be read; replaces the previous one.
  void predict(DatasetId dataset, std::span<const SampleId> order);
  std::optional<PolicyKind> policy(DatasetId dataset) const;  // nullopt: no such dataset
  // The sample's importance, for policies that use it. No effect if the dataset is not tracked.
  void set_importance(DatasetId dataset, SampleId sample, float importance);
  bool retains(DatasetId dataset, SampleId sample) const;
  // Stops tracking the dataset. Frees nothing: its readers no longer have a limit.
  void untrack(DatasetId dataset);
  void remove_session(SessionId session);
  void remove_file(FileId file);

  bool tracks(DatasetId dataset) const { return datasets_.count(dataset) != 0; }
  std::vector<DatasetId> tracked() const;
  uint64_t capacity(DatasetId dataset) const;    // bytes; 0: not tracked
  uint64_t mean_bytes(DatasetId dataset) const;  // of a sample that was read; 0: none was
  // Retained bytes; pages that samples share count once for each sample.
  uint64_t retained() const;
  uint64_t footprint() const;  // bytes of the policies' own tables
  // The parts of `range` that belong to no retained sample.
  void unowned(FileId file, Range range, std::vector<Range>* parts) const;

 private:
  struct Dataset {
    std::unique_ptr<Policy> policy;
    PolicyKind kind = PolicyKind::kAuto;
    std::unordered_map<SampleId, std::vector<FilePages>> retained;
    uint64_t reads = 0, bytes = 0;  // of all reads, for the mean
  };

  // Releases the sample, and appends its pages to `removed` even if other samples share them.
  void evict(Dataset& dataset, SampleId sample, std::vector<FilePages>* removed);
  void free_unowned(std::span<const FilePages> pages, std::vector<FilePages>* freed) const;

  std::map<DatasetId, Dataset> datasets_;
  std::map<FileId, PageOwners> owners_;  // by file
  std::vector<SampleId> victims_;
};

}  // namespace sluice::policy
