#include "policy/planner/sample_planner.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr double kWindowSeconds = 0.5;
constexpr uint64_t kMinWindow = 16 << 20;
constexpr uint64_t kMaxWindow = 512 << 20;
// Fetches of one plan. A reader waits for the copy only of what is known to be fetched: the first
// of many are not to wait for the last one's planning.
constexpr size_t kAtOnce = 32;

}  // namespace

bool SamplePlanner::plan(uint64_t now_ns, std::vector<PlannedRead>* reads,
                         std::vector<PlannedFetch>* fetches) {
  if (samples_ == nullptr) return false;
  double rate = 0;
  for (const auto& [id, mount] : queue_.mounts()) rate = std::max(rate, mount.model.bandwidth());
  const uint64_t link =
      std::clamp(static_cast<uint64_t>(rate * kWindowSeconds), kMinWindow, kMaxWindow);
  retention_.set_link_window(link);
  runs_.cancel_unwanted();
  const JobOrders::Window window = [&](const JobOrders::Ahead& ahead) {
    const uint64_t most = std::min(link, accounts_.budget(ahead.session) / 2);
    return retention_.window(ahead.dataset, ahead.spread, most, now_ns);
  };
  const JobOrders::Judge judge = [&](SessionId session, const Extent& extent) {
    return store_.judge(session, extent, now_ns);
  };
  const JobOrders::Window file_window = [&](const JobOrders::Ahead& ahead) {
    return stage_->room().window(ahead.beyond, ahead.head_start, now_ns);
  };
  if (stage_ != nullptr) stage_->start_checks(now_ns, fetches);
  bool more = false;
  while (!(more = fetches->size() >= kAtOnce)) {
    const auto wanted = samples_->orders().next(window, judge, file_window);
    if (!wanted) break;
    store_.take(*wanted, now_ns, fetches);
  }
  records_.start(now_ns, reads);
  return more;
}

void SamplePlanner::on_sample_begin(SessionId session, std::span<const Extent> parts,
                                    bool own_order) {
  if (parts.empty()) return;
  Presence all;
  for (const Extent& part : parts) {
    const std::optional<Presence> found = store_.presence(session, part, own_order);
    if (!found) return;
    all.wanted += found->wanted;
    all.here += found->here;
    all.coming += found->coming;
    all.missing.alone_ns += found->missing.alone_ns;
    all.missing.link_ns += found->missing.link_ns;
  }
  accounts_.missed(session, all.missing);
  accounts_.count(session,
                  all.here >= all.wanted ? SessionMetric::sample_hits
                  : all.coming > 0       ? SessionMetric::sample_late
                                         : SessionMetric::sample_misses,
                  1);
}

void SamplePlanner::on_sample_end(SessionId session, std::span<const Extent> parts) {
  for (const Extent& part : parts) {
    const Hit hit = store_.on_read(session, part);
    accounts_.hit(session, hit.saved);
    accounts_.count(session, SessionMetric::precached_used_bytes, hit.first_bytes);
    accounts_.count(session, SessionMetric::kept_bytes, hit.again_bytes);
  }
}

}  // namespace sluice::policy
