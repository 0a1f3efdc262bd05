// Fills the histories of sessions: points and the counters of epochs.
#include <algorithm>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/clock.h"

namespace sluice::optimizer {
namespace {

using protocol::EpochField;
using protocol::HistoryField;

uint64_t counter(const SessionMetrics* metrics, SessionMetric metric) {
  return metrics == nullptr ? 0 : (*metrics)[static_cast<size_t>(metric)];
}

}  // namespace

void Optimizer::record(uint64_t now) {
  for (const auto& [id, session] : sessions_) {
    if (session->history.due(now)) add_point(*session, now);
  }
}

void Optimizer::add_point(Session& session, uint64_t now) {
  note_streamed(session, now);
  const SessionView view = scheduler_.view(session.id, now);
  const SessionMetrics* metrics = scheduler_.accounts().metrics(session.id);
  protocol::HistoryPoint point{};
  const auto set = [&point](HistoryField field, uint64_t value) {
    point[static_cast<size_t>(field)] = value;
  };
  const CopyMounts::Flow staged = stage_plan_.mounts().flow(now);
  set(HistoryField::ahead_bytes, view.ahead + stage_plan_.table().ahead());
  set(HistoryField::precached_bytes, counter(metrics, SessionMetric::precached_bytes));
  set(HistoryField::stall_ns, session.waited_ns());
  set(HistoryField::outstanding_bytes, view.outstanding + stage_plan_.table().used());
  set(HistoryField::budget_bytes, view.budget);
  set(HistoryField::in_flight, view.in_flight + staged.in_flight);
  set(HistoryField::depth, view.depth + staged.depth);
  set(HistoryField::bandwidth, std::max(static_cast<uint64_t>(view.bandwidth), staged.bandwidth));
  session.history.add(point, now);
}

void Optimizer::note_streamed(Session& session, uint64_t now) {
  const SessionView view = scheduler_.view(session.id, now);
  session.history.streamed(
      view.passed, view.passed_ready,
      counter(scheduler_.accounts().metrics(session.id), SessionMetric::late_bytes), now);
}

// Called after an access: enters a new epoch if a pass over a file begins with it.
void Optimizer::note_pass(Session& session, uint64_t now) {
  if (session.history.by_order()) return;
  const uint64_t passes = scheduler_.streams().passes(session.id);
  if (passes == session.history.epoch()) return;
  note_streamed(session, now);
  session.history.enter(passes, now);
  enter_epoch(session);
}

// Workers may be sessions of their own: their samples count for the session that owns the order.
Session& Optimizer::whose_epoch(Session& session, uint32_t dataset, uint64_t now) {
  const auto order = samples_.orders().running(session.id, dataset);
  if (!order) return session;
  const auto at = sessions_.find(order->session);
  if (at == sessions_.end()) return session;
  SessionHistory& history = at->second->history;
  if (!history.by_order() || order->epoch > history.epoch()) {
    note_streamed(*at->second, now);
    history.set_by_order();
    history.enter(order->epoch, now);
    enter_epoch(*at->second);
  }
  return *at->second;
}

void Optimizer::enter_epoch(const Session& session) {
  if (Savings* savings = scheduler_.accounts().savings(session.id))
    savings->enter(session.waited_ns());
}

void Optimizer::begin_sample(Session& session, uint64_t reader, uint32_t dataset, uint64_t index,
                             uint64_t time_ns) {
  const std::span<const Extent> parts = samples_.begin(session.id, reader, dataset, index);
  const uint64_t now = now_ns();
  // Counted only for the session that owns the order: a worker that is a session of its own has
  // ended when the job reports.
  Session& owner = whose_epoch(session, dataset, now);
  const SessionMetrics* metrics = scheduler_.accounts().metrics(owner.id);
  const uint64_t hits = counter(metrics, SessionMetric::sample_hits);
  const uint64_t late = counter(metrics, SessionMetric::sample_late);
  const uint64_t misses = counter(metrics, SessionMetric::sample_misses);
  scheduler_.samples().on_sample_begin(owner.id, parts, samples_.reads_at_random(reader));
  if (Savings* savings = scheduler_.accounts().savings(owner.id)) {
    // A worker reads in parallel with the process that owns the order.
    savings->reads(reader, static_cast<uint32_t>(reader >> 32) != owner.peer_pid, now);
    if (parts.empty()) savings->unknown();
  }

  SessionHistory& history = owner.history;
  const uint64_t hit = counter(metrics, SessionMetric::sample_hits) - hits;
  // Times only datasets from which the session selects: events may name any dataset.
  if (const auto at = owner.benefits.find(dataset); at != owner.benefits.end()) {
    at->second.begun(now, hit != 0);
  }
  const uint64_t came_late = counter(metrics, SessionMetric::sample_late) - late;
  if (samples_.set(dataset) != nullptr) {
    const bool copy = is_of_files(parts);
    const bool offered = scheduler_.store().offers_copies(parts, time_ns);
    uptake_.begun(reader, dataset, index, offered, std::min(time_ns, now));
    // Pages of a record may have been cached before Sluice: a control sample then still is native.
    const bool control = !copy && JobOrders::is_control(static_cast<uint32_t>(index)) &&
                         harm_.in_trial(dataset, HarmKeeper::Mechanism::kRecords);
    const bool served = hit + came_late != 0 && !control;
    harm_.begun(
        reader, dataset, index,
        {copy ? HarmKeeper::Mechanism::kCopies : HarmKeeper::Mechanism::kRecords,
         served ? HarmKeeper::How::kServed : HarmKeeper::How::kNative, std::min(time_ns, now),
         static_cast<uint64_t>(scheduler_.store().alone_ns(parts))});
  }
  history.count(EpochField::sample_hits, hit, now);
  history.count(EpochField::sample_late, came_late, now);
  history.count(EpochField::sample_misses, counter(metrics, SessionMetric::sample_misses) - misses,
                now);
  history.count(EpochField::sample_unknown, parts.empty() ? 1 : 0, now);
  if (!samples_.reads_at_random(reader)) return;  // its bytes are counted as a stream's
  const uint64_t bytes = sample_files_.bytes(parts);
  history.count(EpochField::memory_bytes, hit * bytes, now);
  history.count(EpochField::late_bytes, came_late * bytes, now);
}

bool Optimizer::end_sample(Session& session, uint64_t reader, uint32_t dataset, uint64_t index,
                           Uptake::End end) {
  const bool random = samples_.reads_at_random(reader);
  if (!samples_.end(reader, dataset, index)) return false;
  records_.seen(dataset, index);
  const std::span<const Extent> parts = samples_.parts(dataset, index);
  const uint64_t now = now_ns();
  Session& owner = whose_epoch(session, dataset, now);
  owner.fruitless = parts.empty() ? owner.fruitless + 1
                                  : owner.fruitless - std::min<uint64_t>(owner.fruitless, 4);
  rank_samples(session, owner, static_cast<uint32_t>(reader >> 32), dataset, index);
  note_uptake(owner.id, reader, dataset, index, end);
  scheduler_.samples().on_sample_end(owner.id, parts);
  if (!random) return true;
  scheduler_.retention().on_read(owner.id, dataset, index, parts, now);
  owner.history.count(EpochField::read_bytes, sample_files_.bytes(parts), now);
  return true;
}

}  // namespace sluice::optimizer
