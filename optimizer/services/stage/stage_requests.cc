#include "optimizer/services/stage/stage_requests.h"

#include <algorithm>
#include <utility>

#include "optimizer/io/log.h"
#include "policy/chunks/chunk_supply.h"

namespace sluice::optimizer {
namespace {

using protocol::MessageKind;

constexpr uint64_t kPredictShare = 20;  // predictions take at most 1/20 of the core thread's time
constexpr uint64_t kPredictNs = 50 * kMillisecond;  // least time between two predictions
constexpr uint64_t kTurnShare = 4;                  // as kPredictShare, as epochs begin

}  // namespace

StageRequests::StageRequests(const Service& service, Importance* importance, Limits* limits)
    : Service(service), importance_(importance), limits_(limits) {
  base_->dispatcher.add<StageMessage, SettleMessage>(this);
}

void StageRequests::handle(const Peer& peer, const StageMessage& message,
                           std::vector<UniqueFd> /*fds*/) {
  const Session* session = sessions_->find(message.stage.session, message.stage.token);
  if (session == nullptr || !session->may_stage()) {
    base_->server.refuse(peer.connection, session == nullptr ? "no such session"
                                                             : "staging is off for this session");
    return;
  }
  const SessionOptions& options = session->options;
  std::string reason;
  if (!stage_->open(options.cache_dir, &reason)) {
    if (!warned_no_stage_) say(Level::kWarn, "files are not staged: {}", reason);
    warned_no_stage_ = true;
    base_->server.refuse(peer.connection, reason);
    return;
  }
  if (options.stage == SessionOptions::Stage::kAlways) stage_->stage_any_mount();
  use_disk(options);
  importance_->choose_policy();
  uint64_t stale = UINT64_MAX;
  for (const auto& [id, other] : sessions_->all()) {
    stale = std::min<uint64_t>(stale, other->options.stale * kSecond);
  }
  plans_->stage.set_stale(stale);
  stage_->disk().chunks.set_stale(stale);
  limits_->share(now_ns());
  base_->server.send(peer.connection, MessageKind::kStageKnown, {}, stage_->index_fd());
}

// A log replaces packs: what is in both would be written twice.
void StageRequests::use_disk(const SessionOptions& options) {
  if (options.chunks) {
    use_chunks(options);
    return;
  }
  const bool may = !options.cache_dir.empty() && options.packs != 0;
  if (options.logs && may) {
    stage_->disk().log.use(options.cache_dir, options.packs);
  } else if (options.logs && !std::exchange(warned_no_log_, true)) {
    say(Level::kWarn, "policy=lcache without {}: samples that leave memory are fetched again",
        options.cache_dir.empty() ? "SLUICE_CACHE_DIR" : "room (SLUICE_PACKS is 0)");
  } else if (may) {
    stage_->disk().packer.use(options.cache_dir, options.packs);
  }
}

// They are opened when a job's first epoch begins.
void StageRequests::use_chunks(const SessionOptions& options) {
  const bool lacks = !options.substitutes || options.selects;
  if (!lacks || std::exchange(warned_no_chunks_, true)) return;
  if (options.selects && options.substitutes) {
    say(Level::kWarn, "policy={} has no effect with importance=iis", name_of(*options.chunks));
  } else {
    say(Level::kWarn, "policy={} without SLUICE_SUBSTITUTE=any: every sample is read as requested",
        name_of(*options.chunks));
  }
}

void StageRequests::handle(const Peer& peer, const SettleMessage& message,
                           std::vector<UniqueFd> /*fds*/) {
  const protocol::Settle& settle = message.settle;
  const Session* session = sessions_->find_or_refuse(peer, settle.session, settle.token);
  if (session == nullptr) return;
  if (settle.mapped != 0) stage_->refused().refuse(session->id, settle.device, settle.inode);
  stage_->drop(settle.device, settle.inode);
  stage_->see_changes();
  stage_->see_mounts();
  base_->server.send(peer.connection, MessageKind::kDone, {});
}

void StageRequests::predict(uint64_t now) {
  // What the epoch that begins reads again is not to make room for what it reads first.
  began_ |= plans_->samples.orders().begin_epochs();
  plans_->orders_changed |= began_;
  if (!plans_->orders_changed || now < (began_ ? next_turn_ns_ : next_prediction_ns_)) return;
  plans_->orders_changed = began_ = false;
  plans_->scheduler.retention().predict();
  if (stage_->exists()) {
    plans_->stage.predict(plans_->samples.upcoming_files());
    stage_->remove_evicted();
  }
  const uint64_t took = now_ns() - now;
  next_prediction_ns_ = now + std::max(kPredictNs, kPredictShare * took);
  next_turn_ns_ = now + kTurnShare * took;
}

}  // namespace sluice::optimizer
