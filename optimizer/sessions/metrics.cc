#include "optimizer/sessions/metrics.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

namespace sluice::optimizer {

using policy::DeliveryKind;
using policy::ImportanceBook;
using policy::SessionId;
using policy::SessionMetrics;
using protocol::SessionMetric;
namespace {

void count_importance(std::span<const ImportanceBook::View> views, SessionId session,
                      SessionMetrics* metrics) {
  std::map<SessionMetric, uint64_t> sums;
  for (const ImportanceBook::View& view : views) {
    if (view.session != session) continue;
    sums[SessionMetric::samples_offered] += view.all_offered;
    sums[SessionMetric::samples_selected] += view.all_selected;
    sums[SessionMetric::h_hits] += view.deliveries.of(DeliveryKind::kHHit);
    sums[SessionMetric::l_hits_exact] += view.deliveries.of(DeliveryKind::kLExact);
    sums[SessionMetric::l_hits_substituted] += view.deliveries.of(DeliveryKind::kSubstituted);
    sums[SessionMetric::importance_misses] +=
        view.deliveries.of(DeliveryKind::kMiss) + view.deliveries.of(DeliveryKind::kMissOther);
    sums[SessionMetric::heap_swaps] += view.swaps;
    uint64_t& benefit = sums[SessionMetric::benefit_permille];  // of the dataset with the largest
    benefit = std::max(benefit, static_cast<uint64_t>(view.benefit * 1000));
  }
  for (const auto& [metric, sum] : sums) (*metrics)[static_cast<size_t>(metric)] = sum;
}

}  // namespace

void publish_metrics(const SessionMap& sessions, const Recordings& recordings, Plans& plans) {
  const std::vector<ImportanceBook::View> views = plans.importance.views();
  for (const auto& [id, session] : sessions) {
    SessionMetrics* metrics = plans.scheduler.accounts().metrics(id);
    if (metrics == nullptr) continue;
    const auto set = [metrics](SessionMetric metric, uint64_t value) {
      (*metrics)[static_cast<size_t>(metric)] = value;
    };
    set(SessionMetric::events_seen, session->counts.events_seen);
    set(SessionMetric::events_bad, session->counts.events_bad);
    set(SessionMetric::mount_refused, session->counts.mounts_refused);
    set(SessionMetric::folders_listed, session->counts.folders_listed);
    set(SessionMetric::start_files, session->counts.start_files);
    const Recordings::Counts traced = recordings.counts(id);
    set(SessionMetric::trace_records, traced.recorded);
    set(SessionMetric::trace_lost, traced.lost);
    count_importance(views, id, metrics);
    const uint64_t waited = session->waited_ns();
    set(SessionMetric::stall_ns, waited);
    set(SessionMetric::stall_avoided_ns,
        plans.scheduler.accounts().savings(id)->avoided_ns(waited));
    auto& shared = session->memory.get()->header.metrics;
    for (size_t i = 0; i < metrics->size(); ++i) {
      shared[i].store((*metrics)[i], std::memory_order_relaxed);
    }
  }
}

}  // namespace sluice::optimizer
