// One job's epochs over one dataset: which samples it reads in which order, how far it has got, and
// what is to be fetched next. Pure; one thread. Nine bytes a position.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace sluice::optimizer {

class SampleOrder {
 public:
  // Positions [first, first + indices.size()) of `epoch` are these samples; what was said of
  // positions from `first` on is replaced. An epoch later than the running one waits until that is
  // over: its last sample was taken, or a sample is taken that only the later one reads next.
  // Positions beyond what is known, and epochs that are over, are ignored.
  void publish(uint32_t epoch, uint64_t first, std::span<const uint32_t> indices);

  // A worker begins to read this sample. False if no position near the front of the order has it.
  // Positions far behind one that is taken count as taken too: their events were lost.
  bool take(uint32_t index);

  // The next position that was neither taken nor handed out, as its sample; nullopt at the end of
  // what is known. `bytes`, of the sample, count as ahead until it is taken; 0 if it is not known
  // what it is made of.
  std::optional<uint32_t> peek();
  void hand_out(uint32_t bytes);
  // Where peek()'s sample is in the running epoch.
  uint64_t cursor() const { return cursor_; }
  // It was handed out, is that sample and waits for its reader.
  bool is_ahead(uint32_t epoch, uint64_t position, uint32_t index) const {
    return any_ && epoch == epoch_ && position < current_.size() && current_[position] == index &&
           !taken_[position] && handed_[position] != 0;
  }
  // So many bytes of the sample that was handed out last will never be ahead.
  void lighten(uint32_t bytes);
  // Those that were handed out with 0 bytes and not taken come again.
  void rewind() { cursor_ = head_; }

  // Positions between the first that was not taken and the last that was: how far workers that read
  // batches side by side are apart.
  uint64_t spread() const { return last_taken_ > head_ ? last_taken_ - head_ : 0; }
  // What is left of the running epoch, position by position.
  template <typename Visit>
  void for_each_left(Visit visit) const {
    for (uint64_t at = head_; at < current_.size(); ++at) {
      if (!taken_[at]) visit(current_[at]);
    }
  }

  // What was handed out and not taken.
  template <typename Visit>
  void for_each_ahead(Visit visit) const {
    for (uint64_t at = head_; at < handed_end_ && at < current_.size(); ++at) {
      if (!taken_[at] && handed_[at] != 0) visit(current_[at]);
    }
  }

  uint64_t ahead_bytes() const { return ahead_bytes_; }
  // Bytes of memory for the positions that are known, of epochs that wait as well.
  uint64_t held() const;
  // Some position of what is known was not taken yet.
  bool unfinished() const { return taken_count_ < current_.size() || !later_.empty(); }
  static constexpr uint64_t kPositionBytes = 9;
  uint64_t taken() const { return taken_count_; }
  uint64_t size() const { return current_.size(); }
  uint32_t epoch() const { return epoch_; }
  // Neighbours in the order are mostly neighbours in number: streams see such an order coming.
  bool sequential() const { return sequential_; }

  // Places in front of the first one not taken, in which workers may be at work.
  static constexpr uint64_t kFront = 65536;

 private:
  void begin_epoch(uint32_t epoch, std::vector<uint32_t> indices);
  void begin_waiting();
  void judge();
  void give_up(uint64_t position);
  bool take_at(uint64_t position);
  std::optional<uint64_t> find(uint32_t index, uint64_t most) const;

  bool any_ = false;
  uint32_t epoch_ = 0;
  std::vector<uint32_t> current_;
  std::vector<bool> taken_;
  std::vector<uint32_t> handed_;  // bytes, by position
  uint64_t head_ = 0;             // the first position not taken
  uint64_t cursor_ = 0;           // the next to hand out
  uint64_t handed_end_ = 0;       // behind the last position that was handed out
  uint64_t last_taken_ = 0;       // behind the last position taken
  uint64_t taken_count_ = 0, ahead_bytes_ = 0;
  bool sequential_ = false;
  std::map<uint32_t, std::vector<uint32_t>> later_;
};

}  // namespace sluice::optimizer
