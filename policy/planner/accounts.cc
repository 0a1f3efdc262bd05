#include "policy/planner/accounts.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kMaxDistance = 8 << 20;
constexpr uint64_t kMinDistance = 256 << 10;

}  // namespace

void Accounts::add(SessionId session, const PlanOptions& options, bool prefetch, uint64_t memory,
                   std::optional<PolicyKind> policy) {
  Session& entry = sessions_[session];
  entry.policy = policy;
  entry.options = options;
  entry.prefetch = prefetch;
  entry.memory = memory;
}

const Accounts::Session* Accounts::find(SessionId session) const {
  const auto at = sessions_.find(session);
  return at == sessions_.end() ? nullptr : &at->second;
}

Accounts::Session* Accounts::find(SessionId session) {
  const auto at = sessions_.find(session);
  return at == sessions_.end() ? nullptr : &at->second;
}

bool Accounts::prefetches(SessionId session) const {
  const Session* entry = find(session);
  return entry != nullptr && entry->prefetch;
}

void Accounts::set_policy(SessionId session, PolicyKind policy) {
  if (Session* entry = find(session)) entry->policy = policy;
}

SessionMetrics* Accounts::metrics(SessionId session) {
  Session* entry = find(session);
  return entry == nullptr ? nullptr : &entry->metrics;
}

Savings* Accounts::savings(SessionId session) {
  Session* entry = find(session);
  return entry == nullptr ? nullptr : &entry->savings;
}

void Accounts::count(SessionId session, SessionMetric metric, uint64_t by) {
  if (SessionMetrics* all = metrics(session)) (*all)[static_cast<size_t>(metric)] += by;
}

void Accounts::hit(SessionId session, Demand demand) {
  if (Savings* all = savings(session)) all->hit(demand);
}

void Accounts::missed(SessionId session, Demand demand) {
  if (Savings* all = savings(session)) all->missed(demand);
}

void Accounts::charge(SessionId session, uint64_t bytes) {
  outstanding_ += bytes;
  if (Session* entry = find(session)) entry->outstanding += bytes;
}

void Accounts::release(SessionId session, uint64_t bytes) {
  outstanding_ -= bytes;
  if (Session* entry = find(session)) entry->outstanding -= bytes;
}

void Accounts::use(SessionId session, uint64_t bytes) {
  release(session, bytes);
  count(session, SessionMetric::precached_used_bytes, bytes);
}

void Accounts::reserve(SessionId session, uint64_t bytes) {
  reserved_ += bytes;
  if (Session* entry = find(session)) entry->reserved += bytes;
}

void Accounts::end_reservations() {
  reserved_ = 0;
  for (auto& [id, session] : sessions_) session.reserved = 0;
}

bool Accounts::room(SessionId session, uint64_t bytes) const {
  const Session* entry = find(session);
  return entry != nullptr && outstanding_ + reserved_ + bytes <= budget_ &&
         entry->outstanding + entry->reserved + bytes <= budget(session);
}

uint64_t Accounts::budget(SessionId session) const {
  const Session* entry = find(session);
  if (entry == nullptr || entry->memory == 0) return budget_;
  return std::min(budget_, entry->memory);
}

uint64_t Accounts::distance(SessionId session) const {
  const Session* entry = find(session);
  if (entry != nullptr && entry->options.distance != 0) return entry->options.distance;
  uint64_t distance = kMaxDistance;
  while (distance > kMinDistance && distance > budget(session) / 8) distance /= 2;
  return distance;
}

}  // namespace sluice::policy
