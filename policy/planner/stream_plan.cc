#include "policy/planner/stream_plan.h"

#include <algorithm>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kMinWindow = 16 * kMiB;
constexpr uint64_t kMaxWindow = 256 * kMiB;
constexpr double kWindowSeconds = 0.3;
// For a reader of known pace the least window is what it reads in this time, and no more than
// kMinWindow. A job that reads a megabyte a second may end before it has read the next sixteen.
constexpr double kPaceSeconds = 2;
constexpr uint64_t kLeastPaced = 2 * kMiB;
// A single access may be the only one. After a trip no event follows until the cell ends, so such a
// stream is read ahead that far and a little further; after an exact event it is not.
constexpr uint64_t kUnconfirmedExact = 512 * 1024;
constexpr uint64_t kLeastTrust = 1 * kMiB;
constexpr uint64_t kTrust = 4;      // times the bytes read so far, up to the least window
constexpr uint64_t kLongShare = 2;  // divisor: beyond it, what was read counts for less
constexpr uint64_t kWideBlocks = 16;
constexpr uint64_t kUnconfirmedTrip = 4 * kMiB;

// Read ahead before the reader's pace is known. With less, a reader at three quarters of the link's
// rate comes to its end before the next blocks have crossed the link; more would delay a demand
// read elsewhere.
constexpr uint64_t kFirstBytes = 640 * 1024;

uint64_t first_window(uint64_t block) { return std::max(2 * block, kFirstBytes); }

uint64_t page_floor(uint64_t offset) { return offset & ~(kPage - 1); }

}  // namespace

uint64_t effective_threshold(const PlanOptions& options, bool* never) {
  const uint64_t threshold =
      static_cast<uint64_t>(static_cast<unsigned __int128>(options.size) * options.threshold / 100);
  *never = options.distance >= options.size;
  if (*never) return 0;
  return std::min(threshold, options.size - options.distance);
}

uint64_t StreamPlan::full_window(const Stream& stream, const PlanInput& input) const {
  double rate = input.bandwidth;
  uint64_t least = kMinWindow;
  if (stream.rate > 0) {
    rate = std::min(rate, 2 * stream.rate);
    const double pace = std::min(kPaceSeconds * stream.rate, static_cast<double>(kMinWindow));
    least = std::max(kLeastPaced, static_cast<uint64_t>(pace));
  }
  const uint64_t wanted =
      std::clamp(static_cast<uint64_t>(kWindowSeconds * rate), least, kMaxWindow);
  const uint64_t share = input.budget / std::max<uint64_t>(4, input.streams + 1);
  return std::max(std::min(wanted, share), std::min(2 * input.block, input.budget));
}

void StreamPlan::aim(const Stream& stream, const PlanInput& input) {
  const uint64_t unseen = stream.opened - stream.position;
  uint64_t beyond = full_window(stream, input);
  if (!stream.confirmed) {
    beyond = std::min(beyond, stream.exact ? kUnconfirmedExact : kUnconfirmedTrip);
  } else if (stream.exact) {
    // Trust grows with the bytes read in order: two neighbours among random reads are no run.
    // Where a long run ends, all that was read beyond it was for nothing.
    const uint64_t read = stream.position - stream.begin;
    beyond =
        std::min({beyond, std::max(kLeastTrust, kTrust * read), kMinWindow + read / kLongShare});
  }
  // A trip in a confirmed stream means that the whole cell will be read, and a call that has begun
  // reads its range.
  if (stream.confirmed) window_ = std::max(window_, unseen + 8 * input.block);
  if (stream.exact) window_ = std::max(window_, unseen);
  window_ = std::min(window_, unseen + beyond);
  // Rounded to a page, so that no page is read in two parts; with a wide window to a block, or
  // every small step of the reader would cause a small read.
  uint64_t end = page_floor(stream.position + window_);
  if (window_ >= kWideBlocks * input.block) end = end / input.block * input.block;
  target_ = std::max(target_, std::min({end, input.file_size, input.likely_end}));
}

void StreamPlan::on_reader(const Stream& stream, const PlanInput& input) {
  paused_ = false;
  if (!begun_) {
    begun_ = true;
    frontier_ = target_ = page_floor(stream.position);
    unit_begin_ = frontier_;
    window_ = first_window(input.block);
    if (options_.size != 0) target_ = std::min(unit_begin_ + options_.size, input.file_size);
  }
  if (page_floor(stream.position) > frontier_) {
    // What is behind the reader is of no use to it: continue in front of it.
    jumped_ += page_floor(stream.position) - frontier_;
    frontier_ = page_floor(stream.position);
    window_ = std::max(window_, first_window(input.block));
    if (options_.size != 0 && frontier_ >= target_) {
      unit_begin_ = frontier_;
      target_ = std::min(unit_begin_ + options_.size, input.file_size);
    }
  }
  if (options_.size == 0) {
    aim(stream, input);
    return;
  }
  bool never = false;
  const uint64_t threshold = effective_threshold(options_, &never);
  if (stream.position >= unit_begin_ + threshold && stream.events > 1 &&
      target_ < input.file_size) {
    unit_begin_ = target_;
    target_ = std::min(target_ + options_.size, input.file_size);
  }
}

void StreamPlan::on_filled(const Stream& stream, uint64_t bytes, const PlanInput& input) {
  if (options_.size != 0) return;
  window_ += bytes;
  aim(stream, input);
}

}  // namespace sluice::policy
