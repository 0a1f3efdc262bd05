#include "optimizer/services/histories.h"

#include <algorithm>

namespace sluice::optimizer {

using policy::CopyMounts;
using policy::DatasetId;
using policy::Savings;
using policy::SessionMetrics;
using policy::SessionView;
using protocol::SessionMetric;
namespace {

using protocol::HistoryField;

uint64_t counter(const SessionMetrics* metrics, SessionMetric metric) {
  return metrics == nullptr ? 0 : (*metrics)[static_cast<size_t>(metric)];
}

}  // namespace

void Histories::record(uint64_t now) {
  for (const auto& [id, session] : sessions_->all()) {
    if (session->history.due(now)) add_point(*session, now);
  }
}

void Histories::add_point(Session& session, uint64_t now) {
  note_streamed(session, now);
  const SessionView view = plans_->scheduler.view(session.id, now);
  const SessionMetrics* metrics = plans_->scheduler.accounts().metrics(session.id);
  protocol::HistoryPoint point{};
  const auto set = [&point](HistoryField field, uint64_t value) {
    point[static_cast<size_t>(field)] = value;
  };
  const CopyMounts::Flow staged = plans_->stage.mounts().flow(now);
  set(HistoryField::ahead_bytes, view.ahead + plans_->stage.table().ahead());
  set(HistoryField::precached_bytes, counter(metrics, SessionMetric::precached_bytes));
  set(HistoryField::stall_ns, session.waited_ns());
  set(HistoryField::outstanding_bytes, view.outstanding + plans_->stage.table().used());
  set(HistoryField::budget_bytes, view.budget);
  set(HistoryField::in_flight, view.in_flight + staged.in_flight);
  set(HistoryField::depth, view.depth + staged.depth);
  set(HistoryField::bandwidth, std::max(static_cast<uint64_t>(view.bandwidth), staged.bandwidth));
  session.history.add(point, now);
}

void Histories::note_streamed(Session& session, uint64_t now) {
  const SessionView view = plans_->scheduler.view(session.id, now);
  session.history.streamed(
      view.passed, view.passed_ready,
      counter(plans_->scheduler.accounts().metrics(session.id), SessionMetric::late_bytes), now);
}

void Histories::note_pass(Session& session, uint64_t now) {
  if (session.history.by_order()) return;
  const uint64_t passes = plans_->scheduler.streams().passes(session.id);
  if (passes != session.history.epoch()) enter(session, passes, now);
}

// Workers may be sessions of their own: their samples count for the session that owns the order.
Session& Histories::owner(Session& session, DatasetId dataset) const {
  const auto order = plans_->samples.orders().running(session.id, dataset);
  Session* const owner = order ? sessions_->find(order->session) : nullptr;
  return owner == nullptr ? session : *owner;
}

Session& Histories::enter_epoch(Session& session, DatasetId dataset, uint64_t now) {
  Session& own = owner(session, dataset);
  const auto order = plans_->samples.orders().running(session.id, dataset);
  if (!order || order->session != own.id) return own;
  if (!own.history.by_order() || order->epoch > own.history.epoch()) {
    own.history.set_by_order();
    enter(own, order->epoch, now);
  }
  return own;
}

void Histories::enter(Session& session, uint64_t epoch, uint64_t now) {
  note_streamed(session, now);
  session.history.enter(epoch, now);
  if (Savings* savings = plans_->scheduler.accounts().savings(session.id)) {
    savings->enter(session.waited_ns());
  }
}

}  // namespace sluice::optimizer
