// What does a dataset more harm than good is switched off for it, and tried again later.
#include "optimizer/core/optimizer.h"
#include "optimizer/daemon/log.h"

namespace sluice::optimizer {
namespace {

using Mechanism = HarmKeeper::Mechanism;

}  // namespace

void Optimizer::switch_off(uint32_t dataset, Mechanism mechanism) {
  const bool copies = mechanism == Mechanism::kCopies;
  samples_.set_off(dataset, copies, true);
  const HarmWatch* watch = harm_.find(dataset, mechanism);
  const auto following = samples_.following(0, dataset);
  if (watch != nullptr && following) {
    say(Level::kInfo,
        "{} are off for {}: {:.2f} s were lost by them (a sample takes {:.1f} ms without)",
        copies ? "copies" : "records read ahead", following->name,
        static_cast<double>(watch->lost_ns()) / 1e9, static_cast<double>(watch->native_ns()) / 1e6);
  }
  for (const uint32_t id : samples_.sessions_of(dataset)) {
    // Workers that are sessions of their own leave it to whose order they read.
    const auto whose = samples_.running(id, dataset);
    SessionMetrics* metrics = scheduler_.metrics(id);
    if (metrics == nullptr || (whose && whose->session != id)) continue;
    (*metrics)[static_cast<size_t>(copies ? SessionMetric::copies_off
                                          : SessionMetric::records_off)] += 1;
    (*metrics)[static_cast<size_t>(SessionMetric::off_dataset)] = dataset;
  }
}

void Optimizer::watch_harm(uint64_t now) {
  for (const StagePlan::Wasted& wasted : stage_plan_.wasted()) {
    if (wasted.dataset == 0 || samples_.set(wasted.dataset) == nullptr) continue;
    if (harm_.wasted(wasted.dataset, wasted.ns, now)) {
      switch_off(wasted.dataset, Mechanism::kCopies);
    }
  }
  stage_plan_.wasted().clear();
  for (const SampleBook::View& view : samples_.views()) {
    for (const Mechanism mechanism : {Mechanism::kRecords, Mechanism::kCopies}) {
      if (harm_.find(view.dataset, mechanism) == nullptr) continue;
      samples_.set_off(view.dataset, mechanism == Mechanism::kCopies,
                       !harm_.on(view.dataset, mechanism, now));
    }
  }
}

}  // namespace sluice::optimizer
