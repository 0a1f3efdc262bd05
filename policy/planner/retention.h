// What records of large files may leave in the page cache. Only for jobs with a budget of their own
// whose data does not fit it: for all others, nothing is dropped that the kernel would have
// retained at no cost. Pure: time is an argument; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "policy/planner/accounts.h"
#include "policy/planner/mount_queue.h"
#include "policy/planner/planned_file.h"
#include "policy/planner/record_drops.h"
#include "policy/planner/record_plan.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class Retention {
 public:
  // `samples` may be null: then there are no records.
  Retention(SampleBook* samples, Accounts* accounts, MountQueue* queue, PlannedFiles* files)
      : samples_(samples),
        accounts_(*accounts),
        queue_(*queue),
        files_(*files),
        drops_(samples, files, &records_) {}

  // After a sample's end, where samples have an order of their own: decides what is retained of the
  // sample when memory is bounded.
  void on_read(SessionId session, DatasetId dataset, uint64_t index, std::span<const Extent> parts,
               uint64_t now_ns);
  void predict();  // the orders have changed
  // The importance of the sample's records, for policies that use it.
  void set_importance(DatasetId dataset, uint32_t sample, float importance) {
    records_.set_importance(dataset, sample, importance);
  }

  // Sessions, files or sizes have changed.
  void on_change() { ++changes_; }
  void use_file(FileId file, SessionId session);  // the session has it open, until it leaves
  // The book has discarded what it learned of the dataset (SampleBook::release).
  void remove_dataset(DatasetId dataset);
  // REQUIRES: the sample book already knows that the session left.
  void remove_session(SessionId session);
  void remove_file(FileId file);
  // Upper limit, by available memory, of what jobs ask for, bytes.
  void set_most(uint64_t bytes);
  // Bytes that any order may be ahead.
  void set_link_window(uint64_t bytes) { link_window_ = bytes; }

  // How far ahead records of the dataset may be read, of at most `most` bytes: prefetched data
  // takes memory from retained data. `spread`: as JobOrders::Ahead.
  uint64_t window(DatasetId dataset, uint64_t spread, uint64_t most, uint64_t now_ns);
  // Mapped records that the session has read may be dropped: they must be removed from its page
  // tables.
  bool bounds(SessionId session) const;
  // A limit applies to what records of the file may take in memory.
  bool is_bounded(FileId file);
  // What the session reads of the file stays in memory: all its records fit.
  bool stays(FileId file, SessionId session);
  // Bytes of all files of records that the session reads, this one included.
  uint64_t bytes_read_by(SessionId session, FileId file);
  // The session reads the file's records in an order of their own: the pages that it touches say
  // nothing about the pages that follow them.
  bool is_shuffled(FileId file, SessionId session) const;
  const RecordPlan& records() const { return records_; }
  RecordDrops& drops() { return drops_; }

 private:
  struct Dataset {  // of records
    std::set<FileId> files;
    uint64_t window = 0;    // bytes ahead, the recent maximum
    uint64_t hold = 0;      // bytes behind, likewise
    uint64_t limit = 0;     // bytes; 0: none
    bool gathers = false;   // its records are near enough to each other to wait
    uint32_t gathered = 0;  // recent reads for which they were, less those for which not
    uint64_t seen_change = 0;
  };
  struct ReadFiles {  // of the datasets that a session uses
    std::set<FileId> files;
    uint64_t bytes = 0;
    uint64_t seen_change = 0;
  };

  uint64_t size_of(const std::set<FileId>& files) const;
  uint64_t find_limit(DatasetId dataset) const;
  uint64_t waiting(DatasetId dataset) const;
  uint64_t limit(DatasetId dataset);
  std::vector<FilePages> note_files(DatasetId dataset, std::span<const Extent> parts);
  void move_window(DatasetId dataset, uint64_t spread, uint64_t limit, uint64_t now_ns);
  void set_capacity(DatasetId dataset, uint64_t capacity, std::vector<FilePages>* freed);
  std::optional<PolicyKind> requested_policy(DatasetId dataset) const;
  void choose_policy(DatasetId dataset, std::vector<FilePages>* freed);
  void predict(DatasetId dataset, size_t datasets);
  void untrack(DatasetId dataset);

  SampleBook* const samples_;
  Accounts& accounts_;
  MountQueue& queue_;
  PlannedFiles& files_;
  RecordPlan records_;
  RecordDrops drops_;
  std::map<DatasetId, Dataset> datasets_;  // each has files
  std::map<SessionId, ReadFiles> read_;    // by session
  uint64_t changes_ = 1;                   // of sessions, files and sizes
  uint64_t most_ = UINT64_MAX;
  uint64_t link_window_ = 0;
};

}  // namespace sluice::policy
