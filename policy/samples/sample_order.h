// One job's epochs over one dataset: the order of its samples, how far the job has come, and what
// is to be fetched next. Pure; one thread. Nine bytes per position.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policy/samples/later_epochs.h"
#include "policy/samples/reading_lanes.h"

namespace sluice::policy {

class SampleOrder {
 public:
  // Positions [first, first + indices.size()) of `epoch` are these samples; known positions from
  // `first` on are replaced. A later epoch than the running one waits until that has ended: its
  // last sample was taken, or a sample is taken that only the later epoch reads next. Positions
  // that would leave a gap, and epochs that have ended, are ignored. `tentative`: the epoch after
  // the running one may come, and read these: later() has it until it was published, and nothing is
  // handed out for it; ignored of other epochs.
  void publish(uint32_t epoch, uint64_t first, std::span<const uint32_t> indices,
               bool tentative = false);

  // `reader`, a worker of the job, begins to read this sample (0: it is not known which). False if
  // no position near the front of the order has it. Positions far behind a taken one count as
  // taken, too: their events were lost.
  // `at_once`: together with others, all of which it read before.
  bool take(uint32_t index, uint64_t reader = 0, bool at_once = false);

  // Whether samples are handed out in the order's own sequence, whatever its workers do.
  void set_sequence(bool own);
  // The sample that is neither taken nor handed out and that a worker will read next (see
  // reading_lanes.h); nullopt at the end of the known order. hand_out(): the sample's `bytes` count
  // as ahead until it is taken; 0 if its location is not known.
  std::optional<uint32_t> peek();
  void hand_out(uint32_t bytes);
  // The position of peek()'s sample in the running epoch, or of the last that was handed out.
  uint64_t cursor() const { return cursor_; }
  // The sample at `position` is `index`, was handed out and was not taken yet.
  bool is_ahead(uint32_t epoch, uint64_t position, uint32_t index) const {
    return any_ && epoch == epoch_ && position < current_.size() && current_[position] == index &&
           !taken_[position] && handed_[position] != 0;
  }
  // This many bytes of the sample that was handed out last do not count as ahead.
  void lighten(uint32_t bytes);
  // Positions that were handed out with 0 bytes and not taken are handed out again.
  void rewind() { lanes_.return_to(head_); }
  // All that were handed out and not taken are handed out again.
  void restart();

  // Positions between the first that was not taken and the last that was: how far apart workers are
  // that read batches in parallel. Before as many were taken: at least as in the epoch before,
  // since they all begin at once.
  uint64_t spread() const {
    return taken_count_ < spread_.usual ? std::max(apart(), spread_.usual) : apart();
  }
  // How many samples its workers need ahead, beside those that keep the storage busy. `by_worker`:
  // each worker has as many ahead of it as any other; false: that is not known, or samples are
  // handed out in the order's own sequence.
  struct Beyond {
    uint64_t samples = 0;
    bool by_worker = false;
    bool begins = false;  // fewer were taken than workers are usually apart: all begin at once
  };
  Beyond beyond() const;
  // Visits what is left of the running epoch, position by position, while `visit` returns true.
  template <typename Visit>
  void for_each_left(Visit visit) const {
    for (uint64_t at = head_; at < current_.size(); ++at) {
      if (!taken_[at] && !visit(current_[at])) return;
    }
  }

  // At most `most` of them, those that come next: workers read batches in parallel, so that these
  // are the first ones behind each taken one, by turns.
  std::vector<uint32_t> next(size_t most) const;

  // Visits what was handed out and not taken, each with its position.
  template <typename Visit>
  void for_each_ahead(Visit visit) const {
    for (uint64_t at = head_; at < handed_end_ && at < current_.size(); ++at) {
      if (!taken_[at] && handed_[at] != 0) visit(current_[at], at);
    }
  }

  uint64_t ahead_bytes() const { return ahead_bytes_; }
  // Bytes of memory for all known positions, including waiting epochs.
  uint64_t held() const;
  // Some known position was not taken yet.
  bool unfinished() const { return taken_count_ < current_.size() || !later_.empty(); }
  static constexpr uint64_t kPositionBytes = 9;
  uint64_t taken() const { return taken_count_; }
  uint64_t size() const { return current_.size(); }
  uint32_t epoch() const { return epoch_; }
  std::span<const uint32_t> order() const { return current_; }  // of the running epoch
  bool is_taken(uint64_t position) const { return position < taken_.size() && taken_[position]; }
  const LaterEpochs& later() const { return later_; }
  // Most neighbours in the order have consecutive indices: stream detection predicts such an order.
  bool sequential() const { return sequential_; }

  // Workers may be reading within this many positions from the first one not taken.
  static constexpr uint64_t kFront = 65536;

 private:
  void begin_epoch(uint32_t epoch, std::vector<uint32_t> indices);
  void begin_waiting();
  void judge();
  void give_up(uint64_t position);
  void count_ahead();
  bool take_at(uint64_t position, uint64_t reader);
  uint64_t apart() const { return last_taken_ > head_ ? last_taken_ - head_ : 0; }
  std::optional<uint64_t> find(uint32_t index, uint64_t most) const;

  bool any_ = false;
  uint32_t epoch_ = 0;
  std::vector<uint32_t> current_;
  std::vector<bool> taken_;
  std::vector<uint32_t> handed_;  // bytes, by position
  uint64_t head_ = 0;             // the first position not taken
  ReadingLanes lanes_;
  uint64_t cursor_ = 0;      // of peek(), or the last that was handed out
  uint64_t handed_end_ = 0;  // one past the last position that was handed out
  uint64_t last_taken_ = 0;  // one past the last position taken
  struct {
    uint64_t sum = 0, count = 0;  // of apart(), each time that a position was taken
    uint64_t usual = 0;    // twice the mean of the epoch before: about the most that is usual
    uint64_t at_once = 0;  // how many more samples were taken so than otherwise, up to a bound
  } spread_;
  uint64_t taken_count_ = 0, ahead_bytes_ = 0;
  bool sequential_ = false;
  LaterEpochs later_;
};

}  // namespace sluice::policy
