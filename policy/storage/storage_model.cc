#include "policy/storage/storage_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kBandwidthWindowNs = 2'000'000'000;
constexpr uint64_t kSlotNs = 10'000'000;
constexpr uint64_t kLongSlotNs = 100'000'000;
constexpr uint64_t kLatencyWindowNs = 10'000'000'000;
constexpr double kReserveSeconds = 0.003;  // a busy core may not run this process for so long
constexpr double kWindows = 2;             // kernel read-ahead windows in flight at a time
constexpr double kUsual = 0.25;            // quantile: a busy machine delays the others
constexpr unsigned kEnough = 8;            // reads until a value has its full weight
constexpr double kStep = 0.1;
// Of the shortest read seen. What a lone one takes longer than that is queueing behind bursts of
// reads ahead, or a busy machine, for neither of which a plain job would have waited.
constexpr double kMostOverLeast = 1.25;
constexpr double kImplausible = 4;  // times shorter than usual: no read of the storage
constexpr double kGrowth = 1.15;
constexpr double kMeanOf = 32;       // requests
constexpr double kLeastLone = 0.25;  // of a block's time, if the link was never loaded
constexpr double kSmall = 8;         // times smaller than a block

}  // namespace

StorageModel::Sample StorageModel::on_issue(uint64_t now_ns, unsigned in_flight_before) {
  if (in_flight_before == 0) {  // idle time must not count in the rate
    begin_slot(now_ns);
    long_slot_ = {now_ns, 0, true};
  }
  return {now_ns, in_flight_before + 1 >= depth(now_ns), in_flight_before};
}

// A longer read waits for its first block, and then for the rest at the link's rate at best.
uint64_t StorageModel::of_one_block(uint64_t took_ns, uint32_t bytes) const {
  if (bytes <= block_) return took_ns;
  const uint64_t share = took_ns * block_ / bytes;
  const double rate = bandwidth();
  if (rate <= 0) return share;
  const auto rest = static_cast<uint64_t>((bytes - block_) * 1e9 / rate);
  return std::max(share, took_ns - std::min(took_ns, rest));
}

void StorageModel::on_done(const Sample& sample, uint32_t bytes, uint64_t now_ns, bool timed,
                           uint64_t took_ns) {
  if (bytes == 0 || now_ns <= sample.issued_ns) return;
  const uint64_t took = of_one_block(now_ns - sample.issued_ns, bytes);
  now_ns = std::max(now_ns, slot_.ns);  // only about in the order of the times
  // A shorter read does not show a block's latency, nor does one of pages that a reader's own
  // request has brought meanwhile.
  const Usual& usual = usual_[std::min(sample.others, kQuiet - 1)];
  if (timed && static_cast<double>(took) * kImplausible >= usual.ns) {
    if (bytes >= block_)
      lower(&latency_, took, now_ns);
    else
      lower(&short_, took_ns != 0 ? took_ns : took, now_ns);
  }
  if (timed && sample.others < kQuiet)
    usual_[sample.others].add(static_cast<double>(took_ns != 0 ? took_ns : took));
  mean_bytes_ += (bytes - mean_bytes_) / kMeanOf;
  slot_.bytes += bytes;
  ++slot_.requests;
  slot_.full |= sample.full;
  if (now_ns - slot_.ns < kSlotNs) return;
  end_slot(now_ns);
  begin_slot(now_ns);
}

void StorageModel::lower(Windowed<uint64_t>* least, uint64_t took_ns, uint64_t now_ns) {
  if (least->now == 0) least->turn_ns = now_ns;
  least->now = least->now == 0 ? took_ns : std::min(least->now, took_ns);
  if (now_ns > least->turn_ns + kLatencyWindowNs) *least = {took_ns, least->now, now_ns};
}

// Up by kStep * kUsual of the estimate for a higher value, down by kStep * (1 - kUsual) otherwise.
void StorageModel::Usual::add(double took_ns) {
  count += count < kEnough ? 1 : 0;
  if (ns == 0) {
    ns = took_ns;
  } else if (took_ns > ns) {
    ns = std::min(took_ns, ns * (1 + kStep * kUsual));
  } else {
    ns = std::max(took_ns, ns * (1 - kStep * (1 - kUsual)));
  }
}

// Least squares over the number of other reads in flight: where the link is full each of those adds
// the time of its own bytes, for which a job that reads by itself would not have waited.
double StorageModel::usual_ns() const {
  const auto least = static_cast<double>(latency_ns());
  double sum = 0, x = 0, y = 0, xx = 0, xy = 0;
  // Alone it takes no longer than with others.
  double most = least > 0 ? least * kMostOverLeast : most_of_short_ns();
  for (size_t others = 0; others < usual_.size(); ++others) {
    if (usual_[others].count == kEnough) most = std::min(most, usual_[others].ns);
    const auto weight = static_cast<double>(usual_[others].count);
    const auto at = static_cast<double>(others);
    sum += weight;
    x += weight * at;
    y += weight * usual_[others].ns;
    xx += weight * at * at;
    xy += weight * at * usual_[others].ns;
  }
  if (sum == 0) return least;
  const double spread = sum * xx - x * x;
  const double each = spread > 0 ? std::max(0.0, (sum * xy - x * y) / spread) : 0;
  return std::max(std::min((y - each * x) / sum, most), least);
}

// Where no read was as long as a block: of the shortest of them, unless that found its pages cached
// before it was known what the others take.
double StorageModel::most_of_short_ns() const {
  const auto least = static_cast<double>(least_of(short_));
  const auto is_plausible = [least](const Usual& usual) {
    return usual.count < kEnough || least * kImplausible >= usual.ns;
  };
  return least > 0 && std::all_of(usual_.begin(), usual_.end(), is_plausible)
             ? least * kMostOverLeast
             : std::numeric_limits<double>::infinity();
}

void StorageModel::begin_slot(uint64_t now_ns) { slot_ = {.ns = now_ns}; }

void StorageModel::end_slot(uint64_t now_ns) {
  const uint64_t took = now_ns - slot_.ns;
  const double rate = static_cast<double>(slot_.bytes) * 1e9 / static_cast<double>(took);
  if (bandwidth_.turn_ns == 0) bandwidth_.turn_ns = now_ns;
  // Windows turn only under load: a reader with little demand says nothing about the link.
  if (slot_.full && now_ns - bandwidth_.turn_ns > kBandwidthWindowNs) {
    bandwidth_ = {0, bandwidth_.now, now_ns};
    sustained_ = {0, sustained_.now, now_ns};
  }
  bandwidth_.now = std::max(bandwidth_.now, rate);
  long_slot_.bytes += slot_.bytes;
  const uint64_t long_ns = now_ns - long_slot_.ns;
  if (long_slot_.from_idle || long_ns >= kLongSlotNs) {
    const double long_rate =
        static_cast<double>(long_slot_.bytes) * 1e9 / static_cast<double>(long_ns);
    sustained_.now = std::max(sustained_.now, long_rate);
  }
  if (long_ns >= kLongSlotNs) long_slot_ = {now_ns, 0, false};
  if (slot_.full)
    cost_.add(slot_.requests, slot_.bytes, took);
  else
    cost_.interrupt();
  if (!start_.on || !slot_.full) return;
  start_.plateau = rate >= start_.best * kGrowth ? 0 : start_.plateau + 1;
  start_.best = std::max(start_.best, rate);
  if (start_.plateau >= 2 || start_.depth >= max_depth_) {
    start_.on = false;
  } else if (start_.plateau == 0) {
    start_.depth = std::min(start_.depth * 2, max_depth_);
  }
}

uint64_t StorageModel::least_of(const Windowed<uint64_t>& least) {
  if (least.now == 0 || least.before == 0) return std::max(least.now, least.before);
  return std::min(least.now, least.before);
}

unsigned StorageModel::depth(uint64_t now_ns) const {
  unsigned depth = start_.depth;
  if (!start_.on && latency_ns() != 0) {
    const uint64_t busy_ns = now_ns < busy_.until_ns ? busy_.ns : 0;
    const double seconds =
        (2 * static_cast<double>(latency_ns()) + static_cast<double>(busy_ns)) * 1e-9 +
        kReserveSeconds;
    const double rate = rate_ == Rate::kSustained ? sustained() : bandwidth();
    double requests = rate * seconds / block_;
    // The link holds more requests if they are much smaller.
    const double small_ns = cost_.request_ns() + cost_.byte_ns() * mean_bytes_;
    if (mean_bytes_ * kSmall < block_ && small_ns > 0) {
      requests = std::max(requests, seconds * 1e9 / small_ns);
    }
    depth = static_cast<unsigned>(std::min<double>(std::ceil(requests), max_depth_));
  }
  if (now_ns < stalled_until_ns_) depth /= 2;
  return std::clamp(depth, kMinDepth, std::max(max_depth_, kMinDepth));
}

Demand StorageModel::demand(uint64_t bytes) const {
  const double rate = bandwidth();
  if (rate <= 0) return {};
  // A request pays the latency and the transfer of its own block; `usual_ns` includes both.
  const double blocks = static_cast<double>(bytes) / block_;
  return {blocks * usual_ns() / kWindows, static_cast<double>(bytes) * 1e9 / rate};
}

Demand StorageModel::record_demand(uint64_t bytes) const {
  if (bytes == 0) return {};
  if (bytes >= block_) return demand(bytes);
  return {usual_ns(), demand(bytes).link_ns};
}

Demand StorageModel::page_demand(uint64_t bytes) const {
  const double pages = std::ceil(static_cast<double>(bytes) / kPage);
  return {pages * lone_ns(), demand(bytes).link_ns};
}

// A block's usual time less its time on the link. The highest rate seen is at most the link's, so
// this is at most a page's latency, unless the lower bound applies.
double StorageModel::lone_ns() const {
  const double rate = bandwidth();
  if (rate <= 0) return 0;
  return std::max(usual_ns() - static_cast<double>(block_) * 1e9 / rate, usual_ns() * kLeastLone);
}

}  // namespace sluice::policy
