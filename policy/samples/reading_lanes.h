// How the workers of a loader read the positions of an epoch in parallel: each reads a batch of
// consecutive positions, and goes on with the batch that is as many batches further on as there are
// workers (PyTorch's DataLoader gives them out by turns). What one worker reads is a lane. Both
// numbers are learned from the readers; until then there is one lane, in the epoch's order.
//
// What is fetched in the order of positions arrives long before most workers need it: the first
// batch's last sample before the second batch's first. Fetched by lanes, each worker has as many
// samples ahead of it as any other, so that few have to be in memory. Pure; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sluice::policy {

class ReadingLanes {
 public:
  ReadingLanes() : lanes_(1) {}

  // Another epoch: from its beginning, by the same lanes.
  void begin_epoch();
  // False: one lane from now on, whatever the readers do. Positions that were handed out are to be
  // given to enter() if the result is true, as of take().
  bool allow(bool several, uint64_t head);
  // The reader (0: it is not known which) begins with what is at `position`. All before `head` were
  // taken. True: the lanes are others from now on, and nothing counts as ahead in them.
  bool take(uint64_t reader, uint64_t position, uint64_t head);

  uint64_t count() const { return lanes_.size(); }
  // The last batches that were begun are not as these lanes have them.
  bool doubted() const { return doubted_ != 0; }
  uint64_t batch() const { return batches_.size; }  // 1 where there is one lane
  // The next position below `size` to be handed out, by the lane that has least ahead of its
  // worker; `size` if none is left. `is_taken` and `is_handed` say so of a position.
  template <typename Taken, typename Handed>
  uint64_t next(uint64_t size, Taken is_taken, Handed is_handed);
  // The position that next() returned is not returned any more. `counts`: it is ahead of its
  // worker, until leave().
  void pass(bool counts);
  void enter(uint64_t position) { ++lane_of(position).ahead; }
  void leave(uint64_t position) {
    Lane& lane = lane_of(position);
    lane.ahead -= std::min<uint64_t>(lane.ahead, 1);
  }
  // Positions from this one on are returned again, unless they are taken or handed out by then.
  void return_to(uint64_t position);

  static constexpr uint64_t kMostLanes = 256;

 private:
  struct Batches {
    uint64_t size = 1, lanes = 1;
    bool operator==(const Batches&) const = default;
  };
  struct Lane {
    uint64_t hand = 0;   // the next to hand out, counted within the lane
    uint64_t ahead = 0;  // of what was handed out
  };
  struct Reader {
    uint64_t first = 0, last = 0;  // positions of the batch that it reads
  };

  bool observe(Batches batches, uint64_t head);
  bool adopt(Batches batches, uint64_t head);
  // The position of the lane's `at`th sample.
  uint64_t position(uint64_t lane, uint64_t at) const {
    return (at / batches_.size * batches_.lanes + lane) * batches_.size + at % batches_.size;
  }
  Lane& lane_of(uint64_t position) { return lanes_[position / batches_.size % batches_.lanes]; }

  bool several_ = true;  // allowed
  Batches batches_, candidate_;
  uint64_t agreed_ = 0;   // in a row, with the candidate
  uint64_t doubted_ = 0;  // how many more were other than what was adopted than were like it
  std::unordered_map<uint64_t, Reader> readers_;
  std::vector<Lane> lanes_;
  uint64_t chosen_ = 0;  // the lane of next()
  bool stays_ = false;   // next() goes on in that lane: what it returned is not ahead of anybody
};

template <typename Taken, typename Handed>
uint64_t ReadingLanes::next(uint64_t size, Taken is_taken, Handed is_handed) {
  const auto next_of = [&](uint64_t lane) {
    Lane& one = lanes_[lane];
    uint64_t at = position(lane, one.hand);
    while (at < size && (is_taken(at) || is_handed(at))) at = position(lane, ++one.hand);
    return at;
  };
  if (stays_) {
    const uint64_t at = next_of(chosen_);
    if (at < size) return at;
    stays_ = false;
  }
  uint64_t found = size, least = UINT64_MAX;
  for (uint64_t lane = 0; lane < lanes_.size(); ++lane) {
    const uint64_t at = next_of(lane), ahead = lanes_[lane].ahead;
    if (at >= size || ahead > least || (ahead == least && at > found)) continue;
    found = at;
    least = ahead;
    chosen_ = lane;
  }
  return found;
}

}  // namespace sluice::policy
