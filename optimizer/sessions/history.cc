#include "optimizer/sessions/history.h"

#include <algorithm>

#include "protocol/history_io.h"

namespace sluice::optimizer {

using protocol::EpochEntry;
using protocol::EpochField;
using protocol::HistoryChange;
using protocol::HistoryField;
using protocol::HistoryPoint;

namespace {

uint64_t& at(HistoryPoint& point, HistoryField field) { return point[static_cast<size_t>(field)]; }
uint64_t& at(EpochEntry& entry, EpochField field) { return entry[static_cast<size_t>(field)]; }

static_assert(protocol::kPairParts == policy::PairLedger::kParts &&
              protocol::kMostPairs == policy::PairLedger::kMostPairs);

}  // namespace

void SessionHistory::begin(protocol::History* shared, uint64_t now_ns) {
  shared_ = shared;
  begin_ns_ = now_ns;
  next_ns_ = now_ns;
}

uint64_t SessionHistory::since_begin(uint64_t now_ns) const {
  return now_ns - std::min(now_ns, begin_ns_);
}

void SessionHistory::open(uint64_t now_ns) {
  ++epochs_seen_;
  if (entries_.size() == protocol::kHistoryEpochs) return;
  EpochEntry entry{};
  at(entry, EpochField::epoch) = epoch_;
  at(entry, EpochField::begin_ns) = since_begin(now_ns);
  at(entry, EpochField::end_ns) = since_begin(now_ns);
  entries_.push_back(entry);
}

EpochEntry& SessionHistory::present(uint64_t now_ns) {
  if (entries_.empty()) open(now_ns);
  unpublished_ = std::min<uint64_t>(unpublished_, entries_.size() - 1);
  return entries_.back();
}

void SessionHistory::enter(uint64_t epoch, uint64_t now_ns) {
  if (epochs_seen_ != 0 && epoch <= epoch_) return;
  epoch_ = epoch;
  open(now_ns);
}

void SessionHistory::count(EpochField field, uint64_t by, uint64_t now_ns) {
  if (by == 0) return;
  EpochEntry& entry = present(now_ns);
  at(entry, field) += by;
  at(entry, EpochField::end_ns) = since_begin(now_ns);
  at(totals_, field) += by;
}

void SessionHistory::streamed(uint64_t read, uint64_t memory, uint64_t late, uint64_t now_ns) {
  count(EpochField::read_bytes, read - read_, now_ns);
  count(EpochField::memory_bytes, memory - memory_, now_ns);
  count(EpochField::late_bytes, late - late_, now_ns);
  read_ = read;
  memory_ = memory;
  late_ = late;
}

// Removes every second point. A client that overwrote them harms only its own history.
void SessionHistory::halve() {
  for (uint64_t to = 1; to < points_ / 2; ++to) {
    for (uint32_t i = 0; i < protocol::kHistoryFieldCount; ++i) {
      HistoryChange::set(shared_->point[to][i],
                         shared_->point[2 * to][i].load(std::memory_order_relaxed));
    }
  }
  points_ /= 2;
  interval_ns_ *= 2;
}

void SessionHistory::substituted(policy::PairLedger::Pair pair, uint64_t samples) {
  pairs_.add(pair, samples);
}

void SessionHistory::publish_pairs() {
  if (pairs_.seen() == 0) return;
  for (uint32_t i = 0; i < protocol::kPairCounts; ++i) {
    HistoryChange::set(shared_->pair_count[i],
                       pairs_.count(i / protocol::kPairParts, i % protocol::kPairParts));
  }
  const std::vector<policy::PairLedger::Pair>& pairs = pairs_.pairs();
  for (size_t i = 0; i < pairs.size(); ++i) {
    HistoryChange::set(shared_->pair[i], uint64_t{pairs[i].requested} << 32 | pairs[i].trained);
  }
  HistoryChange::set(shared_->pairs, pairs.size());
  HistoryChange::set(shared_->pairs_seen, pairs_.seen());
}

void SessionHistory::add(HistoryPoint point, uint64_t now_ns) {
  at(point, HistoryField::time_ns) = since_begin(now_ns);
  at(point, HistoryField::epoch) = epoch_;
  at(point, HistoryField::read_bytes) = at(totals_, EpochField::read_bytes);
  at(point, HistoryField::late_bytes) = at(totals_, EpochField::late_bytes);
  at(point, HistoryField::sample_hits) = at(totals_, EpochField::sample_hits);
  at(point, HistoryField::sample_late) = at(totals_, EpochField::sample_late);
  at(point, HistoryField::sample_misses) = at(totals_, EpochField::sample_misses);
  const HistoryChange change(*shared_);
  if (points_ == protocol::kHistoryPoints) halve();
  for (uint32_t i = 0; i < protocol::kHistoryFieldCount; ++i) {
    HistoryChange::set(shared_->point[points_][i], point[i]);
  }
  ++points_;
  for (; unpublished_ < entries_.size(); ++unpublished_) {
    for (uint32_t i = 0; i < protocol::kEpochFieldCount; ++i) {
      HistoryChange::set(shared_->epoch[unpublished_][i], entries_[unpublished_][i]);
    }
  }
  publish_pairs();
  HistoryChange::set(shared_->points, points_);
  HistoryChange::set(shared_->epochs, entries_.size());
  HistoryChange::set(shared_->epochs_seen, epochs_seen_);
  HistoryChange::set(shared_->interval_ns, interval_ns_);
  next_ns_ = now_ns + interval_ns_;
}

}  // namespace sluice::optimizer
