#include "optimizer/services/samples/harm_control.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"

namespace sluice::optimizer {

using policy::CopyTable;
using policy::DatasetId;
using policy::HarmWatch;
using policy::JobOrders;
using policy::kNoDataset;
using policy::kNoSession;
using policy::number;
using policy::SessionId;
using policy::SessionMetrics;
using protocol::SessionMetric;
namespace {

using Mechanism = HarmControl::Mechanism;
using Verdict = HarmWatch::Verdict;

constexpr size_t kControlsDropped = 64;  // enough for a verdict

const char* name_of(Mechanism mechanism) {
  return mechanism == Mechanism::kCopies ? "copies" : "records read ahead";
}

}  // namespace

// Samples that overlap in one thread cannot be timed separately, and are not timed: a newly begun
// sample replaces the one before it, whose end then finds another sample and is ignored.
void HarmControl::begun(uint64_t reader, DatasetId dataset, uint64_t index, const Begin& begin) {
  if (open_.size() >= kMostOpen) open_.clear();  // events of their ends were lost
  const bool alone = open_.count(reader) == 0;
  open_[reader] = {dataset, index, begin, alone};
}

// A native sample is one that no mechanism delivered: it counts for the control group of each.
void HarmControl::ended(uint64_t reader, DatasetId dataset, uint64_t index, uint64_t time_ns) {
  const auto at = open_.find(reader);
  if (at == open_.end() || at->second.dataset != dataset || at->second.index != index) return;
  const auto [begin, alone] = std::pair(at->second.begin, at->second.alone);
  open_.erase(at);
  if (!alone || time_ns < begin.time_ns || stage_->disk().invests(dataset)) return;
  Pair& pair = watches_[dataset];
  const uint64_t took = time_ns - begin.time_ns;
  if (begin.kind == Kind::kPrefetched) {
    const Verdict verdict = pair.of(begin.by).prefetched(took, time_ns, begin.expected_ns);
    on_verdict(dataset, begin.by, verdict, now_ns());
    return;
  }
  const Verdict records = pair.of(Mechanism::kRecords).native(took, time_ns);
  const Verdict copies = pair.of(Mechanism::kCopies).native(took, time_ns);
  on_verdict(dataset, Mechanism::kRecords, records, now_ns());
  on_verdict(dataset, Mechanism::kCopies, copies, now_ns());
}

const HarmWatch* HarmControl::find(DatasetId dataset, Mechanism mechanism) const {
  const auto at = watches_.find(dataset);
  return at == watches_.end() ? nullptr : &at->second.watches[static_cast<size_t>(mechanism)];
}

bool HarmControl::in_trial(DatasetId dataset, Mechanism mechanism) const {
  const HarmWatch* watch = find(dataset, mechanism);
  return watch != nullptr && watch->in_trial();
}

void HarmControl::on_verdict(DatasetId dataset, Mechanism mechanism, Verdict verdict,
                             uint64_t now) {
  if (verdict == Verdict::kNothing) return;
  apply(dataset, mechanism, now);
  const HarmWatch* watch = find(dataset, mechanism);
  const auto following = plans_->samples.following(kNoSession, dataset);
  if (watch == nullptr || !following) return;
  const char* what = name_of(mechanism);
  const double lost = static_cast<double>(watch->lost_ns()) / 1e9;
  switch (verdict) {
    case Verdict::kTry:
      say(Level::kInfo,
          "{} of {}: {:.2f} s may have been lost, a half of its samples is read without", what,
          following->name, lost);
      if (mechanism == Mechanism::kCopies) drop_control_copies(dataset);
      break;
    case Verdict::kHarmless:
      say(Level::kInfo, "{} of {}: samples are no faster without", what, following->name);
      break;
    case Verdict::kHarmful:
      say(Level::kInfo, "{} are off for {}: {:.2f} s were lost (a sample takes {:.1f} ms without)",
          what, following->name, lost, static_cast<double>(watch->native_ns()) / 1e6);
      switch_off(dataset, mechanism);
      break;
    case Verdict::kNothing:
      break;
  }
}

void HarmControl::switch_off(DatasetId dataset, Mechanism mechanism) {
  const bool copies = mechanism == Mechanism::kCopies;
  if (copies) {  // those that exist would still be read
    plans_->stage.drop_dataset(dataset);
    stage_->remove_evicted();
  }
  for (const SessionId id : plans_->samples.datasets().sessions_of(dataset)) {
    // Worker sessions are not counted; the session that owns the order they read is.
    const auto running = plans_->samples.orders().running(id, dataset);
    SessionMetrics* metrics = plans_->scheduler.accounts().metrics(id);
    if (metrics == nullptr || (running && running->session != id)) continue;
    (*metrics)[static_cast<size_t>(copies ? SessionMetric::copies_off
                                          : SessionMetric::records_off)] += 1;
    (*metrics)[static_cast<size_t>(SessionMetric::off_dataset)] = number(dataset);
  }
}

// Copies of upcoming control samples would leave the trial without a control group until they are
// used up.
void HarmControl::drop_control_copies(DatasetId dataset) {
  size_t dropped = 0;
  for (const uint32_t sample : plans_->samples.orders().upcoming(dataset)) {
    if (!JobOrders::is_control(sample)) continue;
    plans_->scheduler.store().drop(plans_->samples.parts(dataset, sample));
    if (++dropped == kControlsDropped) break;
  }
  stage_->remove_evicted();
}

// May begin a new trial of a mechanism whose time off is over.
void HarmControl::apply(DatasetId dataset, Mechanism mechanism, uint64_t now) {
  const bool files = mechanism == Mechanism::kCopies;
  plans_->samples.datasets().set_off(dataset, files, !watches_[dataset].of(mechanism).on(now));
  plans_->samples.datasets().set_trial(dataset, files, in_trial(dataset, mechanism));
}

void HarmControl::tick(uint64_t now) {
  for (const CopyTable::Wasted& wasted : plans_->stage.table().take_wasted()) {
    if (wasted.dataset == kNoDataset || plans_->samples.set(wasted.dataset) == nullptr) continue;
    if (stage_->disk().invests(wasted.dataset)) continue;
    HarmWatch& watch = watches_[wasted.dataset].of(Mechanism::kCopies);
    on_verdict(wasted.dataset, Mechanism::kCopies, watch.wasted(wasted.ns, now), now);
  }
  for (auto& [dataset, pair] : watches_) {
    const bool off = std::any_of(std::begin(pair.watches), std::end(pair.watches),
                                 [](const HarmWatch& watch) { return watch.is_off(); });
    if (!off) continue;
    for (const Mechanism mechanism : {Mechanism::kRecords, Mechanism::kCopies}) {
      apply(dataset, mechanism, now);
    }
  }
}

}  // namespace sluice::optimizer
