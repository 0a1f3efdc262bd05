// Two logs of samples on a fast disk: one lies in the order of this epoch and is read whole, chunk
// by chunk; what has been read is written to the other, in the order of the next epoch (LCache,
// section III-B, Algorithm 1). Both share one budget: what was read is released at once, where the
// paper gives each log a half. Nothing here changes which samples are read, or when.
//
// Pure: the caller reads, writes and releases what is named here. One thread. About 36 bytes a
// sample for both logs, besides the caller's `bytes`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "policy/chunks/log_index.h"

namespace sluice::policy {

class LogPlan {
 public:
  // `bytes` by sample, 0 where they are not known; it outlives this. `chunk`: bytes of a chunk,
  // about. `budget` in bytes, of both logs together.
  LogPlan(std::span<const uint32_t> bytes, uint64_t chunk, uint64_t budget);

  // An epoch begins, and the one after it reads `next`, which may be a guess: what the log has is
  // then read from where it lies. Without `next` the log stays as it lies, and what it lacks is
  // added to it as it comes. True: the log that was read in the last epoch is of no use any more,
  // and is to be released whole.
  bool begin_epoch(std::span<const SampleId> next);
  // The next epoch's order became known after this one had begun. No effect if one was known, or if
  // no sample of it has a size that is known: the others' are assumed to be about those.
  void expect(std::span<const SampleId> next);

  // What a batch needs: ranges of the current log, in whole blocks, each for one request, and
  // samples that are to be read from where they come from.
  struct Reads {
    std::vector<LogRange> ranges;
    std::vector<SampleId> remote;
  };
  Reads reads(std::span<const SampleId> batch) const;

  struct Write {
    SampleId sample;
    uint64_t offset;
    bool operator==(const Write&) const = default;
  };
  // What follows from a batch that has been read: ranges of the current log, in whole blocks, to be
  // released before anything is written; and samples to be written, in the order of their offsets,
  // to the log of the next epoch, or to the current one if `to_current`.
  struct Moves {
    std::vector<LogRange> release;
    std::vector<Write> writes;
    bool to_current = false;
  };
  // REQUIRES of this and of returned(): the bytes of the samples are known.
  Moves consumed(std::span<const SampleId> batch);
  // Whether consumed() would write the sample, if the budget has room for it.
  bool lacks(SampleId sample) const;
  // The same of samples that were fetched, and leave memory before this epoch has read them: those
  // that the current log lacks are written to it.
  Moves returned(std::span<const SampleId> batch);

  // The sample was not written after all, or its original has changed: it is in neither log. Its
  // blocks may stay, and count as free.
  void drop(SampleId sample);

  uint32_t current() const { return current_; }  // which of the two logs is read: 0 or 1
  const LogIndex& log(uint32_t which) const { return logs_[which]; }
  bool is_ahead() const { return ahead_; }  // the next epoch's log is being written
  bool is_cached(SampleId sample) const { return logs_[current_].is_written(sample); }
  uint64_t used() const { return used_; }  // bytes of blocks in both logs; at most the budget
  uint64_t footprint() const { return logs_[0].footprint() + logs_[1].footprint(); }

  // Of two samples in the log those that are nearer are read with one request: about what a disk
  // reads in the time of one.
  static constexpr uint64_t kGap = 1 << 20;
  static constexpr uint64_t kFewest = 16, kMost = 4096;  // samples of a chunk

 private:
  // `usual`: bytes of a sample, about.
  LogIndex laid_out(std::span<const SampleId> order, uint64_t usual) const;
  bool write(LogIndex* log, SampleId sample);
  void write_current(std::span<const SampleId> batch, Moves* moves);
  void remove(LogIndex* log, SampleId sample, std::vector<LogRange>* released);

  const std::span<const uint32_t> bytes_;
  const uint64_t chunk_, budget_;
  std::array<LogIndex, 2> logs_;
  uint32_t current_ = 0;
  bool ahead_ = false;  // the other log is being written
  uint64_t used_ = 0;
};

}  // namespace sluice::policy
