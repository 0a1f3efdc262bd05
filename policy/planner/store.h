// What samples' bytes are read from ahead of their readers, over its two backends: whole files
// (StagePlan: copies in the stage, or originals that are prefetched), and records of followed files
// in the page cache (RecordStore, Retention). Only here is decided which of the two a part of a
// sample belongs to. Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policy/copies/stage_plan.h"
#include "policy/planner/record_store.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class Store {
 public:
  struct Kinds {  // of parts
    bool files = false, records = false;
  };

  // All outlive the store. `samples` and `files` may be null if no sample is of whole files.
  Store(SampleBook* samples, StagePlan* files, RecordStore* records, Accounts* accounts,
        Retention* retention)
      : samples_(samples),
        files_(files),
        records_(*records),
        accounts_(*accounts),
        retention_(*retention) {}

  // A part of a coming sample: is it to be fetched now? After kTake, take() appends the fetch of a
  // file to `fetches`; records are taken by RecordStore::start().
  FetchVerdict judge(SessionId session, const Extent& part, uint64_t now_ns);
  void take(const WantedExtent& wanted, uint64_t now_ns, std::vector<PlannedFetch>* fetches);

  // The samples are records that lie together: as soon as one of them is taken for the session, all
  // of them are, if there is room. Those of another file than the first's are not, nor are files.
  void read_together(SessionId session, DatasetId dataset, std::span<const uint32_t> samples);
  // What was not read so far of the dataset is read sample by sample.
  void read_apart(SessionId session, DatasetId dataset) {
    if (samples_ != nullptr) samples_->groups().remove_dataset(session, dataset);
  }

  // What there is of a part that is about to be read; nullopt: its sample is not counted.
  std::optional<Presence> presence(SessionId session, const Extent& part, bool own_order);
  // A reader has finished a sample of which this is a part.
  Hit on_read(SessionId session, const Extent& part);

  // Whether the part is never fetched, for now or for good. `stages` false: no file is.
  FileTable::Refused refused(const Extent& part, bool stages) const;
  // Copies of all parts have existed since `time_ns` or longer.
  bool offers_copies(std::span<const Extent> parts, uint64_t time_ns) const;
  // Copies of the parts are dropped.
  void drop(std::span<const Extent> parts);
  // Time that storage takes for the whole files among the parts, one after the other, ns; 0: not
  // known.
  double alone_ns(std::span<const Extent> parts) const;
  // Time that it takes for the parts while many samples are read in parallel, ns; 0: not known.
  double parallel_ns(std::span<const Extent> parts) const;
  // Memory that retaining the parts takes, which for a small file is much more than its size,
  // bytes; 0: one of them is refused, or of a kind that is not among `retained`.
  uint64_t charge(std::span<const Extent> parts, Kinds retained) const;

  // All of the sample is in memory for the session, or on its way. False: not known.
  bool is_ahead(SessionId session, DatasetId dataset, uint32_t sample);
  // All parts of the sample are in memory; have been so since it was last read. False: not known.
  bool in_memory(DatasetId dataset, uint32_t sample) const;
  bool retains(DatasetId dataset, uint32_t sample) const;
  // The sample's importance, for policies that use it.
  void set_importance(DatasetId dataset, uint32_t sample, float importance);

 private:
  template <typename Test>
  bool all_parts(DatasetId dataset, uint32_t sample, Test test) const;

  SampleBook* const samples_;
  StagePlan* const files_;
  RecordStore& records_;
  Accounts& accounts_;
  Retention& retention_;
};

}  // namespace sluice::policy
