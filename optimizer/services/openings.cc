#include "optimizer/services/openings.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>

#include "optimizer/io/clock.h"
#include "optimizer/io/peer.h"
#include "protocol/path_hash.h"

namespace sluice::optimizer {

using policy::SessionId;
using protocol::MessageKind;

namespace {

// An open that takes less is not worth a question and its answer.
constexpr uint64_t kWorthNs = 400'000;
constexpr uint64_t kMostCheap = 32;              // such opens, until nothing more is opened
constexpr uint64_t kMostHeldNs = 3'000'000'000;  // a file is not held open for longer
constexpr size_t kMostHeld = 512;                // files of a session, with those being closed
// A job that takes less than one in so many files does not need them.
constexpr uint64_t kTakenShare = 4, kEnough = 64;
// How often files are opened is seen of the first ones and of one in so many, for so long.
constexpr uint64_t kWatched = 16, kWatchedShare = 8, kOfLate = 256;
constexpr uint64_t kWatchNs = 500 * kMillisecond;
constexpr unsigned kMostOpened = 4;  // times that a file is opened ahead
// Nothing is opened for so long after the job did what open files may change.
constexpr uint64_t kPauseNs = 1'000'000'000;
constexpr unsigned kThreads = 32;
constexpr unsigned kPerMount = 16;  // that close files: a close is a round trip on some mounts

long raw_call(long number, long a, long b, long c) {
  const long result = syscall(number, a, b, c);
  return result == -1 ? -errno : result;
}

uint64_t hash_of(const std::string& path) { return protocol::path_hash(path.data(), path.size()); }

}  // namespace

Openings::Openings(const Service& service)
    : Service(service),
      threads_{{base_, sessions_, 2 * kThreads, kThreads},
               {base_, sessions_, kThreads, kPerMount}} {
  base_->dispatcher.add<TakeMessage, CloseAheadMessage>(this);
  identified_ = protocol::read_access_identity(raw_call, &identity_);
}

uint64_t Openings::longest_ns(const Session& session) const {
  // A change on another host is to be seen after so long, as with copies.
  return identified_ ? std::min(kMostHeldNs, session.options.stale * kSecond) : 0;
}

unsigned Openings::wanted(SessionId id) const {
  const Session* session = sessions_->find(id);
  if (session == nullptr || longest_ns(*session) == 0) return 0;
  const auto at = ahead_.find(id);
  if (at == ahead_.end()) return 1;
  const Ahead& ahead = at->second;
  const bool one = ahead.cheap < kMostCheap &&
                   ahead.expired < kEnough + kTakenShare * ahead.taken &&
                   ahead.held.size() + threads_.closing.running(id) < kMostHeld &&
                   ahead.paused_until_ns <= now_ns();
  if (!one) return 0;
  if (ahead.watched < kWatched) return 1;
  const uint64_t again = (ahead.again * 2 + ahead.watched) / (ahead.watched * 2);  // rounded
  return 1 + static_cast<unsigned>(std::min<uint64_t>(again, kMostOpened - 1));
}

bool Openings::offer(SessionId id, const std::string& path, OpenedFile file) {
  if (!file.fd) return false;
  const Session* session = sessions_->find(id);
  const uint64_t hash = hash_of(path);
  Ahead* const ahead = wanted(id) != 0 ? &ahead_[id] : nullptr;
  const bool cheap = file.took_ns < kWorthNs;
  if (ahead != nullptr) ahead->cheap = cheap ? ahead->cheap + 1 : ahead->cheap / 2;
  if (ahead == nullptr || cheap || ahead->held.count(hash) != 0) {
    close(id, std::move(file));
    return false;
  }
  const std::span places(session->memory.get()->header.opened_ahead);
  const auto bucket = places.subspan(protocol::opened_bucket(hash), protocol::kOpenedBucket);
  const auto free = std::find_if(bucket.begin(), bucket.end(), [](const auto& place) {
    return place.load(std::memory_order_relaxed) == 0;
  });
  if (free == bucket.end()) {
    close(id, std::move(file));
    return false;
  }
  const uint64_t looked_up = file.began_ns, until = looked_up + longest_ns(*session);
  ahead->held[hash] = {.path = path,
                       .file = std::move(file),
                       .place = static_cast<uint32_t>(&*free - places.data()),
                       .until_ns = until,
                       .looked_up_ns = looked_up};
  count(id);
  free->store(hash, std::memory_order_release);
  return true;
}

size_t Openings::held(SessionId id) const {
  const auto ahead = ahead_.find(id);
  return ahead != ahead_.end() ? ahead->second.held.size() : 0;
}

bool Openings::holds(SessionId id, const std::string& path) const {
  return find(id, path) != nullptr;
}

void Openings::look_up_again(SessionId id, const std::vector<std::string>& paths,
                             uint64_t older_ns) {
  const auto ahead = ahead_.find(id);
  if (ahead == ahead_.end()) return;
  const uint64_t now = now_ns();
  for (const std::string& path : paths) {
    const auto held = ahead->second.held.find(hash_of(path));
    if (held == ahead->second.held.end() || held->second.path != path ||
        now < held->second.looked_up_ns + older_ns || !held->second.file.fd) {
      continue;
    }
    held->second.looked_up_ns = now;
    const auto same = std::make_shared<bool>(false);
    threads_.opening.run(
        id, held->second.file.about.device,
        [same, path, about = held->second.file.about] {
          *same = optimizer::look_up_again(path, about);
        },
        [this, id, path, same] {
          if (!*same) withdraw(id, path);
          count(id);
        });
  }
}

void Openings::report_gone(SessionId id, const Held& held, How how) const {
  const uint64_t now = now_ns();
  const Gone gone{how, now - std::min(now, held.looked_up_ns)};
  const std::string path = held.path;
  for (const OnGone& one : on_gone) one(id, path, gone);
}

const Openings::Held* Openings::find(SessionId id, const std::string& path) const {
  const auto ahead = ahead_.find(id);
  if (ahead == ahead_.end()) return nullptr;
  const auto held = ahead->second.held.find(hash_of(path));
  return held != ahead->second.held.end() && held->second.path == path ? &held->second : nullptr;
}

void Openings::withdraw(SessionId id, const std::string& path) {
  if (holds(id, path)) gone(id, hash_of(path), How::kWithdrawn);
}

void Openings::withdraw_if(SessionId id,
                           const std::function<bool(const std::string& path)>& predicate) {
  const auto ahead = ahead_.find(id);
  if (ahead == ahead_.end()) return;
  std::vector<uint64_t> hashes;
  for (const auto& [hash, held] : ahead->second.held) {
    if (predicate(held.path)) hashes.push_back(hash);
  }
  for (const uint64_t hash : hashes) {
    if (ahead_[id].held.contains(hash)) gone(id, hash, How::kWithdrawn);
  }
}

// REQUIRES: it is held.
void Openings::gone(SessionId id, uint64_t hash, How how) {
  Ahead& ahead = ahead_[id];
  const auto at = ahead.held.find(hash);
  Held held = std::move(at->second);
  ahead.held.erase(at);
  if (how == How::kExpired && held.opened != 0) how = How::kWithdrawn;  // it was only watched
  if (how == How::kExpired) ++ahead.expired;
  if (const Session* session = sessions_->find(id)) {
    session->memory.get()->header.opened_ahead[held.place].store(0, std::memory_order_relaxed);
  }
  close(id, std::move(held.file));
  count(id);
  report_gone(id, held, how);
}

void Openings::close(SessionId id, OpenedFile file) {
  if (file.fd) file.more.push_back(std::move(file.fd));
  for (UniqueFd& one : file.more) {
    const auto fd = std::make_shared<UniqueFd>(std::move(one));
    threads_.closing.run(
        id, file.about.device, [fd]() { fd->reset(); }, [this, id] { count(id); });
  }
}

// The descriptor was handed over.
void Openings::taken(SessionId id, Ahead* ahead, uint64_t hash) {
  Held& held = ahead->held[hash];
  OpenedFile handed_over;
  handed_over.about = held.file.about;
  handed_over.fd = std::move(held.file.fd);
  close(id, std::move(handed_over));
  if (held.opened != 0) {
    opened_again(id, hash);
    return;
  }
  held.opened = 1;
  ++ahead->taken;
  held.watched = ahead->watched < kWatched || ahead->taken % kWatchedShare == 0;
  if (held.watched && ++ahead->watched >= kOfLate) {
    ahead->watched /= 2;
    ahead->again /= 2;
  }
  if (!next_descriptor(&held)) {
    gone(id, hash, How::kTaken);
    return;
  }
  count(id);
  report_gone(id, held, How::kTaken);
}

// REQUIRES: it is held, and the job has opened it before.
void Openings::opened_again(SessionId id, uint64_t hash) {
  Ahead& ahead = ahead_[id];
  Held& held = ahead.held[hash];
  if (held.watched) ++ahead.again;
  if (++held.opened >= kMostOpened || !next_descriptor(&held)) gone(id, hash, How::kWithdrawn);
}

// False: the file is of no use any more.
bool Openings::next_descriptor(Held* held) {
  if (!held->file.more.empty()) {
    held->file.fd = std::move(held->file.more.back());
    held->file.more.pop_back();
    return true;
  }
  if (held->watched) held->until_ns = std::min(held->until_ns, now_ns() + kWatchNs);
  return held->watched;
}

void Openings::count(SessionId id) {
  const auto at = ahead_.find(id);
  const size_t count = threads_.opening.running(id) + threads_.closing.running(id) +
                       (at != ahead_.end() ? at->second.held.size() : 0);
  if (const Session* session = sessions_->find(id)) {
    session->memory.get()->header.opened_count.store(static_cast<uint32_t>(count),
                                                     std::memory_order_release);
  }
  if (count != 0) return;
  const auto [first, last] = waiting_.equal_range(id);
  for (auto one = first; one != last; ++one) {
    base_->server.send(one->second, MessageKind::kDone, {});
  }
  waiting_.erase(first, last);
}

void Openings::handle(const Peer& peer, const TakeMessage& message, std::vector<UniqueFd> /*fds*/) {
  const Session* session =
      sessions_->find_or_refuse(peer, message.take.session, message.take.token);
  if (session == nullptr) return;
  const SessionId id = session->id;
  const Held* const held = find(id, message.path);
  if (held != nullptr && !held->file.fd) {  // it was taken, and is opened again
    opened_again(id, hash_of(message.path));
    base_->server.send(peer.connection, MessageKind::kDone, {});
    return;
  }
  // A descriptor gives access: only to one that has it anyway, by what the kernel reports.
  if (held == nullptr || held->until_ns < now_ns() || !(message.take.identity == identity_) ||
      !shares_paths(peer.pid) || !shares_rights(peer.pid, message.take.thread)) {
    base_->server.send(peer.connection, MessageKind::kDone, {});
    return;
  }
  if (!base_->server.hand_over(peer.connection, MessageKind::kFileTaken,
                               std::as_bytes(std::span(&held->file.about, 1)), held->file.fd)) {
    base_->server.send(peer.connection, MessageKind::kDone, {});
    return;
  }
  taken(id, &ahead_[id], hash_of(message.path));
}

void Openings::handle(const Peer& peer, const CloseAheadMessage& message,
                      std::vector<UniqueFd> /*fds*/) {
  const Session* session =
      sessions_->find_or_refuse(peer, message.start.session, message.start.token);
  if (session == nullptr) return;
  const SessionId id = session->id;
  waiting_.emplace(id, peer.connection);
  Ahead& ahead = ahead_[id];
  ahead.paused_until_ns = now_ns() + kPauseNs;
  if (on_close_all) on_close_all(id);
  while (!ahead.held.empty()) gone(id, ahead.held.begin()->first, How::kWithdrawn);
  count(id);
}

void Openings::tick(uint64_t now) {
  for (const auto& [id, ahead] : ahead_) {
    std::vector<uint64_t> old;
    for (const auto& [hash, held] : ahead.held) {
      if (held.until_ns < now) old.push_back(hash);
    }
    for (const uint64_t hash : old) gone(id, hash, How::kExpired);
  }
}

void Openings::remove_session(SessionId id) {
  if (const auto at = ahead_.find(id); at != ahead_.end()) {
    while (!at->second.held.empty()) gone(id, at->second.held.begin()->first, How::kWithdrawn);
    ahead_.erase(at);
  }
  waiting_.erase(id);
}

}  // namespace sluice::optimizer
