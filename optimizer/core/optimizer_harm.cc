// What does a dataset more harm than good is measured and logged. It is not switched off yet: on
// local disks the measure takes noise for harm.
#include "optimizer/core/optimizer.h"
#include "optimizer/daemon/log.h"

namespace sluice::optimizer {
namespace {

using Mechanism = HarmKeeper::Mechanism;

}  // namespace

void Optimizer::switch_off(uint32_t dataset, Mechanism mechanism) {
  const bool copies = mechanism == Mechanism::kCopies;
  const HarmWatch* watch = harm_.find(dataset, mechanism);
  const auto following = samples_.following(0, dataset);
  if (watch != nullptr && following) {
    say(Level::kInfo,
        "{} may not pay for {}: {:.2f} s were lost by them (a sample takes {:.1f} ms without)",
        copies ? "copies" : "records read ahead", following->name,
        static_cast<double>(watch->lost_ns()) / 1e9, static_cast<double>(watch->native_ns()) / 1e6);
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
}

}  // namespace sluice::optimizer
