// The stage: which sessions may use it, its budget, and the orders that its plan predicts from.
#include <sys/epoll.h>

#include <algorithm>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

using protocol::MessageKind;

constexpr uint64_t kPredictShare = 20;  // predictions take at most 1/20 of the core thread's time
constexpr uint64_t kPredictNs = 50 * kMillisecond;  // least time between two predictions

}  // namespace

bool Optimizer::may_stage(const Session& session) const {
  return session.options.stage != SessionOptions::Stage::kNever && session.options.prefetch;
}

void Optimizer::handle(const Peer& peer, const StageMessage& message,
                       std::vector<UniqueFd> /*fds*/) {
  const Session* session = session_of(message.stage.session, message.stage.token);
  if (session == nullptr || !may_stage(*session)) {
    server_.refuse(peer.connection, session == nullptr ? "no such session" : "it is not wanted");
    return;
  }
  const bool first = !stage_.exists();
  std::string reason;
  if (!stage_.open(session->options.cache_dir, &reason)) {
    if (!said_no_stage_) say(Level::kWarn, "files are not staged: {}", reason);
    said_no_stage_ = true;
    server_.refuse(peer.connection, reason);
    return;
  }
  if (first) {
    if (stage_.watch_fd() >= 0) watch(stage_.watch_fd(), Tag::kWatch, 0, EPOLLIN, true);
    if (stage_.mounts_fd() >= 0) watch(stage_.mounts_fd(), Tag::kMounts, 0, EPOLLPRI, true);
  }
  if (session->options.stage == SessionOptions::Stage::kAlways) stage_.stage_any_mount();
  if (!session->options.cache_dir.empty() && session->options.packs != 0) {
    stage_.use_packs(session->options.cache_dir, session->options.packs);
  }
  choose_policy();
  uint64_t stale = UINT64_MAX;
  for (const auto& [id, other] : sessions_) {
    stale = std::min<uint64_t>(stale, other->options.stale * kSecond);
  }
  stage_plan_.set_stale(stale);
  share_budget(now_ns());
  server_.send(peer.connection, MessageKind::kStageKnown, {}, stage_.index_fd());
}

void Optimizer::handle(const Peer& peer, const SettleMessage& message,
                       std::vector<UniqueFd> /*fds*/) {
  if (session_or_refuse(peer, message.settle.session, message.settle.token) == nullptr) return;
  const protocol::Settle& settle = message.settle;
  if (settle.mapped != 0)
    stage_.refuse(static_cast<uint32_t>(settle.session), settle.device, settle.inode);
  stage_.drop(settle.device, settle.inode);
  stage_.see_changes();
  stage_.see_mounts();
  server_.send(peer.connection, MessageKind::kDone, {});
}

// Called before the copies of the sample's files are released.
void Optimizer::note_uptake(uint32_t owner, uint64_t reader, uint32_t dataset, uint64_t index,
                            Uptake::End end) {
  end.storage_ns =
      static_cast<uint64_t>(scheduler_.store().alone_ns(samples_.parts(dataset, index)));
  const bool before = uptake_.needs_originals(dataset);
  if (uptake_.ended(reader, dataset, index, end) != Uptake::Verdict::kOriginal && !before) return;
  if (SessionMetrics* metrics = scheduler_.accounts().metrics(owner)) {
    ++(*metrics)[static_cast<size_t>(SessionMetric::originals_needed)];
  }
  if (before || !uptake_.needs_originals(dataset)) return;
  if (const auto following = samples_.following(0, dataset)) {
    say(Level::kInfo, "{} is not read from copies: its originals are read ahead", following->name);
  }
  stage_plan_.need_originals(dataset);
  stage_.remove_evicted();
}

// Predicts uses from orders. Orders arrive in pieces: it runs a few times a second rather than for
// each piece, and less often for long orders, to leave most of the time for fetching.
void Optimizer::predict(uint64_t now) {
  if (!orders_new_ || now < next_prediction_ns_) return;
  orders_new_ = false;
  scheduler_.retention().predict();
  if (stage_.exists()) {
    stage_plan_.predict(samples_.orders().upcoming_files());
    stage_.remove_evicted();
  }
  const uint64_t took = now_ns() - now;
  next_prediction_ns_ = now + std::max(kPredictNs, kPredictShare * took);
}

void Optimizer::share_budget(uint64_t now) {
  uint64_t asked = 0;
  bool unlimited = false;
  for (const auto& [id, session] : sessions_) {
    if (!may_stage(*session)) continue;
    unlimited |= session->options.memory == 0;
    asked = std::max(asked, session->options.memory);
  }
  stage_.tick(now, shares_.stage(scheduler_.accounts().outstanding() +
                                     scheduler_.retention().records().kept(),
                                 unlimited ? 0 : asked));
  scheduler_.accounts().set_budget(shares_.cache(stage_plan_.table().used()));
}

}  // namespace sluice::optimizer
