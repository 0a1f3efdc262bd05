// LCache's two logs, live (SLUICE_POLICY=lcache; LCache, section III): files that were fetched are
// written to SLUICE_CACHE_DIR in the order in which the next epoch will read them, and come back
// from there, a chunk with each request. policy/chunks decides, optimizer/chunks reads and writes;
// this connects the two with the stage.
//
// One job is followed, the first whose samples are whole files: those of other jobs, or of other
// ranks of the same, come from their storage. Core thread only; the file system is touched on
// threads of its own and, for what find() returns, on those of the caller. 32 bytes of memory a
// sample of the dataset beside followed_job.h's, and 64 for each that waits to be moved.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimizer/chunks/logged_copy.h"
#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "optimizer/services/stage/log_reads.h"
#include "optimizer/sessions/plans.h"
#include "optimizer/stage/log_moves.h"
#include "policy/chunks/followed_job.h"
#include "policy/chunks/log_contents.h"
#include "policy/chunks/released_ranges.h"
#include "protocol/stage.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class CopyLog {
 public:
  // `plans` outlives this.
  CopyLog(std::shared_ptr<Mailbox> mailbox, const Plans* plans);

  // From now on there is a log of at most `bytes` in `folder`. The first call decides. If the
  // folder cannot be used, one warning gives the reason and the call has no effect.
  void use(const std::string& folder, uint64_t bytes);
  // No session is left: the log is removed, until the next use().
  void release();

  // Where the file's bytes are in the log; nullptr: they are not. To be called once for each fetch.
  std::shared_ptr<const LoggedCopy> find(policy::SampleFileId file);
  // Whether find() would find the file.
  bool has(policy::SampleFileId file);
  // Whether write() would look at the file; whether it would change a log when the file is read;
  // whether there is room among what waits to be written.
  bool wants(policy::SampleFileId file) {
    return follow() && followed_->job->sample_of(file).has_value();
  }
  bool may_move(policy::SampleFileId file);
  // The file was read. If it is in the log that is read, it is written to the next one from there.
  bool move(policy::SampleFileId file);
  bool may_write() const { return files_ != nullptr && queue_.waiting < kMostWaiting; }
  // A copy of the file is about to be made for write(): of how many bytes at most. They count among
  // what waits until end_copy().
  uint64_t begin_copy(policy::SampleFileId file);
  void end_copy(uint64_t bytes, uint64_t turn) {
    queue_.waiting -= turn == queue_.turn ? bytes : 0;
  }
  uint64_t turn() const { return queue_.turn; }
  bool follows(policy::DatasetId dataset) const {
    return followed_ != nullptr && followed_->job->dataset() == dataset;
  }
  // `copy` has the bytes of the file, in memory, which was `stat` when it was copied. They are
  // written to where the next reader will look for them: later, so that a copy's memory is in use
  // until then, kMostWaiting bytes at most for all. To be called when the file has been copied or
  // read, for the next epoch, and when a copy `leaves` memory, for this one if it is still to be
  // read: it is written only where it lacks.
  void write(policy::SampleFileId file, UniqueFd copy, const protocol::StageStat& stat,
             bool leaves);
  // The log's bytes are not, or may not be, those of the file.
  void drop(policy::SampleFileId file);
  void drop_all();
  // What find() returned could not be read, or had other bytes. Ends the log if that is due to the
  // disk, too often.
  void damaged(policy::SampleFileId file, const LoggedCopy& logged);

  struct View {
    uint64_t used_bytes = 0;                        // of both logs
    uint64_t written_files = 0, written_bytes = 0;  // in this run
    uint64_t moved_files = 0;                       // of these from the log of the epoch before
    uint64_t skipped_files = 0;                     // not written: too much waits already
    uint64_t found_files = 0, missed_files = 0;     // fetches of samples that are followed
    uint64_t chunk_reads = 0, lone_reads = 0;       // requests: of whole chunks, of one sample
    uint64_t predicted_epochs = 0;                  // whose first chunk lies in their order
    uint64_t damaged_files = 0;
  };
  // nullopt: no log was requested.
  std::optional<View> view() const;

  static constexpr uint64_t kMostWaiting = 64 << 20;
  static constexpr uint64_t kMostDamaged = 16;  // samples, over the time of a log

 private:
  using SampleId = policy::SampleId;

  struct Later {  // to be written for the next epoch from the log of this one
    SampleId sample = 0;
    LogSource::Logged from;
  };
  struct Followed {
    std::unique_ptr<policy::FollowedJob> job;
    policy::ReleasedRanges released;  // of the log that is read
    std::deque<Later> later;
    std::vector<bool> is_later;  // by sample
  };

  bool follow();  // false: there is no job to follow, or no log
  void choose();
  void unfollow();
  void clear(uint32_t log);
  void turned();
  void expected();
  bool put_off(SampleId sample);
  void move_later();
  bool may_leave(SampleId sample) const;
  void move(const Later& one, bool turned);
  struct Pending;
  void write(SampleId sample, LogSource source, uint64_t version, bool unread);
  void wrote(const Pending& pending, const LogMoved& moved);
  void drop_sample(SampleId sample);
  void close();
  void end_files(uint64_t folder, std::shared_ptr<LogFiles> files);
  void end(const std::string& why);

  const std::shared_ptr<Mailbox> mailbox_;
  const Plans* const plans_;
  std::string folder_;
  uint64_t budget_ = 0;
  bool requested_ = false, failed_ = false;
  std::shared_ptr<LogFiles> files_;  // null: there is no log
  std::unique_ptr<Followed> followed_;
  policy::LogContents contents_;  // of followed_
  struct {
    uint64_t waiting = 0;  // bytes of copies that are to be written
    uint64_t turn = 0;     // counts release(), so that what was asked for before does not count
  } queue_;
  uint64_t damaged_ = 0;  // samples, of this log
  View view_;
  LogReads reads_;
  Executor writer_;  // one thread a folder: what is written and released keeps its order
  Executor closer_;  // of what was cleared
};

}  // namespace sluice::optimizer
