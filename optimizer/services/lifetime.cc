#include "optimizer/services/lifetime.h"

#include <algorithm>

#include "optimizer/io/log.h"
#include "optimizer/io/peer.h"

namespace sluice::optimizer {
namespace {

using protocol::MessageKind;

constexpr uint64_t kGoneDeadlineNs = kSecond;
constexpr uint64_t kIdleTimeoutNs = kSecond;
constexpr uint64_t kFirst = 5 * kSecond;  // the starting process has so long for its hello

}  // namespace

Lifetime::Lifetime(const Service& service, Seat* seat, Scans* scans, Starts* starts,
                   Openings* openings)
    : Service(service),
      seat_(seat),
      scans_(scans),
      starts_(starts),
      openings_(openings),
      idle_since_ns_(now_ns()) {
  base_->dispatcher.add<StopMessage, ByeMessage>(this);
  files_->on_all_closed = [this] { answer(false); };
  recordings_->on_settled = [this] { answer(false); };
  scans_->on_all_closed = [this] { answer(false); };
  starts_->threads().on_all_closed = [this] { answer(false); };
  openings_->threads().opening.on_all_closed = [this] { answer(false); };
  openings_->threads().closing.on_all_closed = [this] { answer(false); };
}

void Lifetime::handle(const Peer& peer, const StopMessage& /*message*/,
                      std::vector<UniqueFd> /*fds*/) {
  say(Level::kInfo, "stopping: requested by process {}", peer.pid);
  base_->loop.stop();
  waiters_.push_back({peer.connection, now_ns() + kGoneDeadlineNs});
}

void Lifetime::handle(const Peer& peer, const ByeMessage& message, std::vector<UniqueFd> /*fds*/) {
  const Session* session = sessions_->find_or_refuse(peer, message.bye.session, message.bye.token);
  if (session == nullptr) return;
  bool others = false;
  for (const protocol::Slot& slot : session->memory.get()->slots) {
    const uint32_t pid = slot.pid.load(std::memory_order_acquire);
    others |= pid != 0 && pid != peer.pid && life_of(pid) != Life::kEnded;
  }
  if (!others) sessions_->end(session->id);
  waiters_.push_back({peer.connection, now_ns() + kGoneDeadlineNs});
  answer(false);
}

void Lifetime::answer(bool all) {
  if (!all && closing() > 0) return;
  for (const Waiter& waiter : waiters_) {
    base_->server.send(waiter.connection, MessageKind::kGone, {});
  }
  waiters_.clear();
}

void Lifetime::tick(uint64_t now) {
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (now < waiter.deadline_ns) return false;
    say(Level::kWarn, "{} files are still open: a file system does not answer", closing());
    base_->server.send(waiter.connection, MessageKind::kGone, {});
    return true;
  });
  const uint64_t linger =
      std::max(base_->settings.linger * kSecond, sessions_->had_any() ? 0 : kFirst);
  if (!sessions_->empty()) {
    idle_since_ns_ = now;
  } else if (now - idle_since_ns_ >= linger || !seat_->still_ours()) {
    base_->loop.stop();  // also if new jobs cannot find this optimizer
  }
}

uint64_t Lifetime::patience_ns() const {
  return sessions_->empty() && waiters_.empty() ? kIdleTimeoutNs : EventLoop::kTickNs;
}

}  // namespace sluice::optimizer
