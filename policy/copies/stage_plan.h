// What is in the stage, what is staged next, and what is evicted for it: the decisions about whole
// files, as RecordStore's and Retention's are about ranges of large ones. Pure: time is an
// argument, and what is to be done is returned as values. One thread. Files are numbers of a
// FileTable.
//
// A copy is ahead (fetched for a reader that has not read it yet), retained (read, and retained by
// the replacement policy), or spent (read, and not retained).
//
// Of datasets whose samples cannot be read from copies the originals are prefetched, into their own
// page cache. Such a file is ahead until it was read; afterwards only the kernel decides about it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "policy/copies/copy_mounts.h"
#include "policy/copies/copy_room.h"
#include "policy/copies/copy_table.h"
#include "policy/samples/file_table.h"
#include "policy/samples/wanted.h"
#include "policy/storage/demand.h"
#include "policy/util/ids.h"

namespace sluice::policy {

struct PlannedFetch {
  uint64_t token = 0;
  SampleFileId file{};
  SessionId session{};    // for which it is fetched
  uint64_t device = 0;    // of CopyMounts, for which it is in flight
  bool check = false;     // only check whether the original still is what was copied
  bool to_cache = false;  // no copy: the original is read into its page cache
  // It comes with a chunk that is read whole, for the fetch that this one names with its token: for
  // itself, or as a companion of the one before.
  uint64_t chunk_for = 0;
  bool package = false;  // a package is to be read whole for it
};

class StagePlan {
 public:
  // `files` outlives the plan.
  explicit StagePlan(FileTable* files)
      : files_(*files), mounts_(files), room_(files, &table_, &mounts_) {}
  StagePlan(const StagePlan&) = delete;
  StagePlan& operator=(const StagePlan&) = delete;

  const FileTable& files() const { return files_; }
  CopyTable& table() { return table_; }
  const CopyTable& table() const { return table_; }
  CopyRoom& room() { return room_; }
  const CopyRoom& room() const { return room_; }
  const CopyMounts& mounts() const { return mounts_; }

  // Whether the file's bytes are in a log, so that its fetch need not wait for room in its mount's
  // depth. Empty: never.
  std::function<bool(SampleFileId)> is_logged;
  // What is to come with the file, since a chunk is read whole for it: asked once, when its fetch
  // starts. Empty: nothing, and no chunk is.
  struct Companions {
    std::vector<SampleFileId> files;
    bool package = false;  // substitutes: no order waits for them
  };
  std::function<Companions(SampleFileId)> companions;
  // Whether companions() of the file would be any: a copy that it has already is fetched again, so
  // that they come. Empty: never.
  std::function<bool(SampleFileId)> brings;

  // How long a validation of the original is valid; after half of that time it is repeated.
  void set_stale(uint64_t ns) { stale_ns_ = ns; }
  // A sample of the session that needs the file comes up: is the file to be fetched (or validated)
  // now?
  FetchVerdict judge(SampleFileId file, uint64_t now_ns, SessionId session);
  // Starts validations, as start() does, of copies that a sample needs and that were validated long
  // ago; and fetches of files that a validation found to have changed.
  void start_checks(uint64_t now_ns, std::vector<PlannedFetch>* checks);
  // After kTake: makes room and starts the fetch, which must end in on_staged() or on_failed().
  PlannedFetch start(SampleFileId file, SessionId session, uint64_t now_ns,
                     DatasetId dataset = kNoDataset);
  // The same for a file with its companions, which are retained until they are read as far as the
  // replacement policy has room for them. Appends the fetches, the file's first.
  void start_with_companions(SampleFileId file, SessionId session, uint64_t now_ns,
                             DatasetId dataset, std::vector<PlannedFetch>* fetches);
  // `bytes`: the file's size; `charged`: what the copy takes. False: the copy is of no use (the
  // budget shrank, or the file was dropped meanwhile) and must be removed. `from_storage`: it was
  // read from the file's own storage, not from a pack. `validated_ns`: when the original was
  // compared, if not when the fetch began.
  bool on_staged(const PlannedFetch& fetch, uint64_t device, uint64_t bytes, uint64_t charged,
                 uint64_t now_ns, bool from_storage = true, FetchTime time = {},
                 uint64_t validated_ns = 0);
  // A check that found no difference. False: it is no longer of interest.
  bool on_valid(const PlannedFetch& fetch);
  // kError: retried with the next order. kMount: no file of its folder is ever fetched. kChanged: a
  // check found a different file. kFull: the memory file system has no room. kAbandoned: it may
  // never end; its result will be of no use.
  enum class Failure : uint8_t { kError, kMount, kChanged, kFull, kAbandoned };
  void on_failed(const PlannedFetch& fetch, Failure failure);

  // A reader has finished a sample that this file is (part of).
  Hit on_read(SessionId session, SampleFileId file);
  // The file has changed, or may have: its copy must be removed (it is in CopyTable::evicted()
  // then, unless it is being fetched; the result of that fetch is refused).
  void drop(SampleFileId file);
  void drop_all();
  void drop_dataset(DatasetId dataset);  // the copies that were made for it

  // Other files are read next, as CopyRoom::predict(): files that could not be staged are tried
  // again.
  void predict(const UpcomingFiles& coming);
  // The dataset's samples are read from the originals: copies that were made for it are dropped.
  void need_originals(DatasetId dataset);
  void remove_dataset(DatasetId dataset) { originals_.erase(dataset); }
  bool reads_originals() const { return !originals_.empty(); }  // of some dataset
  // The original is in its page cache, and no reader has read it since it was prefetched.
  bool original_is_ahead(SampleFileId file) const;

  // The time that its storage takes to deliver the file.
  Demand demand(SampleFileId file) const;

 private:
  template <typename Test>
  void drop_if(Test test);
  void start_refetches(uint64_t now_ns, std::vector<PlannedFetch>* fetches);
  void note_validated(SampleFileId file, StagedCopy& copy, uint64_t time_ns);
  uint64_t source_of(SampleFileId file, SessionId session) const;
  StagedCopy& begin_fetch(SampleFileId file, SessionId session, DatasetId dataset);
  StagedCopy* find(const PlannedFetch& fetch);

  FileTable& files_;
  CopyTable table_;
  CopyMounts mounts_;
  CopyRoom room_;
  uint64_t stale_ns_ = 3'000'000'000;
  uint64_t next_token_ = 1;
  std::deque<std::pair<SampleFileId, SessionId>> refetch_;  // files and sessions
  // By device: one that hangs holds up no other's checks. Files and when, oldest first.
  std::map<uint64_t, std::deque<std::pair<SampleFileId, uint64_t>>> validated_;
  std::set<DatasetId> originals_;
};

}  // namespace sluice::policy
