// A mechanism that does a dataset more harm than good is switched off for it, and retried later.
#include "optimizer/core/optimizer.h"
#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

using Mechanism = HarmKeeper::Mechanism;
using Verdict = HarmWatch::Verdict;

constexpr size_t kControlsDropped = 64;  // enough for a verdict

const char* name_of(Mechanism mechanism) {
  return mechanism == Mechanism::kCopies ? "copies" : "records read ahead";
}

}  // namespace

void Optimizer::on_harm(uint32_t dataset, const HarmKeeper::Finding& found, uint64_t now) {
  apply_harm(dataset, found.mechanism, now);
  const HarmWatch* watch = harm_.find(dataset, found.mechanism);
  const auto following = samples_.following(0, dataset);
  if (watch == nullptr || !following) return;
  const char* what = name_of(found.mechanism);
  const double lost = static_cast<double>(watch->lost_ns()) / 1e9;
  switch (found.verdict) {
    case Verdict::kTry:
      say(Level::kInfo,
          "{} of {}: {:.2f} s may have been lost, a half of its samples is read without", what,
          following->name, lost);
      if (found.mechanism == Mechanism::kCopies) drop_control_copies(dataset);
      return;
    case Verdict::kHarmless:
      say(Level::kInfo, "{} of {}: samples are no faster without", what, following->name);
      return;
    case Verdict::kHarmful:
      say(Level::kInfo, "{} are off for {}: {:.2f} s were lost (a sample takes {:.1f} ms without)",
          what, following->name, lost, static_cast<double>(watch->native_ns()) / 1e6);
      break;
    case Verdict::kNothing:
      return;
  }
  // Copies that exist would still be read.
  if (found.mechanism == Mechanism::kCopies) {
    stage_plan_.drop_dataset(dataset);
    stage_.remove_evicted();
  }
  for (const uint32_t id : samples_.datasets().sessions_of(dataset)) {
    // Worker sessions are not counted; the session that owns the order they read is.
    const auto running = samples_.orders().running(id, dataset);
    SessionMetrics* metrics = scheduler_.accounts().metrics(id);
    if (metrics == nullptr || (running && running->session != id)) continue;
    const bool copies = found.mechanism == Mechanism::kCopies;
    (*metrics)[static_cast<size_t>(copies ? SessionMetric::copies_off
                                          : SessionMetric::records_off)] += 1;
    (*metrics)[static_cast<size_t>(SessionMetric::off_dataset)] = dataset;
  }
}

// Copies of upcoming control samples would leave the trial without a control group until they are
// used up.
void Optimizer::drop_control_copies(uint32_t dataset) {
  size_t dropped = 0;
  for (const uint32_t sample : samples_.orders().upcoming(dataset)) {
    if (!JobOrders::is_control(sample)) continue;
    scheduler_.store().drop(samples_.parts(dataset, sample));
    if (++dropped == kControlsDropped) break;
  }
  stage_.remove_evicted();
}

void Optimizer::apply_harm(uint32_t dataset, Mechanism mechanism, uint64_t now) {
  const bool files = mechanism == Mechanism::kCopies;
  samples_.datasets().set_off(dataset, files, !harm_.on(dataset, mechanism, now));
  samples_.datasets().set_trial(dataset, files, harm_.in_trial(dataset, mechanism));
}

void Optimizer::watch_harm(uint64_t now) {
  for (const CopyTable::Wasted& wasted : stage_plan_.table().wasted()) {
    if (wasted.dataset == 0 || samples_.set(wasted.dataset) == nullptr) continue;
    if (const auto found = harm_.wasted(wasted.dataset, wasted.ns, now)) {
      on_harm(wasted.dataset, *found, now);
    }
  }
  stage_plan_.table().wasted().clear();
  for (const uint32_t dataset : harm_.off()) {
    for (const Mechanism mechanism : {Mechanism::kRecords, Mechanism::kCopies}) {
      if (harm_.find(dataset, mechanism) != nullptr) apply_harm(dataset, mechanism, now);
    }
  }
}

}  // namespace sluice::optimizer
