#include "policy/samples/reading_lanes.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kLeastAgreed = 4;  // batches of one size and distance, or as many as workers

}  // namespace

void ReadingLanes::begin_epoch() {
  readers_.clear();
  std::ranges::fill(lanes_, Lane());
  chosen_ = 0;
  stays_ = false;
}

bool ReadingLanes::allow(bool several, uint64_t head) {
  several_ = several;
  return !several && lanes_.size() > 1 && adopt({}, head);
}

bool ReadingLanes::take(uint64_t reader, uint64_t position, uint64_t head) {
  if (reader == 0 || !several_) return false;
  auto known = readers_.find(reader);
  if (known == readers_.end()) {
    if (readers_.size() < kMostLanes) readers_[reader] = {position, position};
    return false;
  }
  Reader& one = known->second;
  if (position == one.last + 1) {
    one.last = position;
    // The next batch is not this reader's: it reads alone, as in another loop over the samples.
    return lanes_.size() > 1 && position % batches_.size == 0 && observe({}, head);
  }
  const uint64_t size = one.last + 1 - one.first;
  const uint64_t distance = position > one.last ? position - one.first : 0;
  const bool regular = distance > size && distance % size == 0 && one.first % size == 0 &&
                       distance / size <= kMostLanes;
  one = {position, position};
  return observe(regular ? Batches{size, distance / size} : Batches{}, head);
}

// Threads that share a batch, loaders that give a batch to whichever worker is free, and events
// that were lost look irregular.
bool ReadingLanes::observe(Batches batches, uint64_t head) {
  if (batches == batches_) {
    agreed_ = 0;
    doubted_ -= std::min<uint64_t>(doubted_, 1);
    return false;
  }
  agreed_ = batches == candidate_ ? agreed_ + 1 : 1;
  candidate_ = batches;
  ++doubted_;
  const uint64_t enough = std::max(kLeastAgreed, std::max(batches_.lanes, batches.lanes));
  if (agreed_ >= enough) return adopt(batches, head);
  return doubted_ >= 2 * enough && adopt({}, head);
}

bool ReadingLanes::adopt(Batches batches, uint64_t head) {
  batches_ = batches;
  agreed_ = doubted_ = 0;
  lanes_.assign(batches.lanes, Lane());
  chosen_ = 0;
  stays_ = false;
  // All of the turn of batches that `head` is in: what was taken of it is passed over.
  const uint64_t turn = head / (batches.size * batches.lanes) * batches.size;
  for (Lane& lane : lanes_) lane.hand = turn;
  return true;
}

void ReadingLanes::pass(bool counts) {
  Lane& lane = lanes_[chosen_];
  ++lane.hand;
  lane.ahead += counts ? 1 : 0;
  stays_ = !counts;
}

void ReadingLanes::return_to(uint64_t position) {
  const uint64_t turn = position / (batches_.size * batches_.lanes) * batches_.size;
  for (Lane& lane : lanes_) lane.hand = std::min(lane.hand, turn);
  stays_ = false;
}

}  // namespace sluice::policy
