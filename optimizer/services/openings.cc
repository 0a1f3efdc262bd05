#include "optimizer/services/openings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <unordered_map>
#include <utility>

#include "optimizer/io/beside.h"
#include "optimizer/io/clock.h"
#include "optimizer/io/peer.h"
#include "policy/folders/open_window.h"
#include "protocol/path_hash.h"

namespace sluice::optimizer {

using policy::OpenWindow;
using policy::SessionId;
using protocol::MessageKind;

namespace {

static_assert(OpenWindow::kAhead + OpenWindow::kBehind <= protocol::kOpenedAhead);

// An open that takes less is not worth a question and its answer.
constexpr uint64_t kWorthNs = 400'000;
constexpr uint32_t kMostCheap = 32;                   // such opens, until nothing more is opened
constexpr uint64_t kLongestStartNs = 60'000'000'000;  // as the library's
constexpr uint64_t kMostHeldNs = 3'000'000'000;       // a file is not held open for longer
constexpr uint64_t kNoMount = 0;                      // files to be opened may lie on several

long raw_call(long number, long a, long b, long c) {
  const long result = syscall(number, a, b, c);
  return result == -1 ? -errno : result;
}

uint64_t hash_of(const std::string& path) { return protocol::path_hash(path.data(), path.size()); }

}  // namespace

struct Openings::Start {
  explicit Start(std::vector<std::string> list)
      : paths(std::move(list)), window(static_cast<uint32_t>(paths.size())) {
    for (uint32_t file = 0; file < paths.size(); ++file)
      by_hash.emplace(hash_of(paths[file]), file);
  }
  const std::vector<std::string> paths;
  std::unordered_map<uint64_t, uint32_t> by_hash;  // to the file
  OpenWindow window;
  std::map<uint32_t, Opened> held;             // by file: those that are open
  uint64_t began_ns = now_ns(), followed = 0;  // hash of the file that the job opened last
  uint32_t cheap = 0;
  uint64_t oldest_ns = 0;  // a file is not held open for longer
  const std::shared_ptr<std::atomic<bool>> over = std::make_shared<std::atomic<bool>>(false);

  std::optional<uint32_t> find(uint64_t hash) const {
    const auto at = by_hash.find(hash);
    return at != by_hash.end() ? std::optional(at->second) : std::nullopt;
  }
};

Openings::Openings(const Service& service)
    : Service(service),
      threads_{{base_, sessions_, kThreads, kThreads}, {base_, sessions_, kThreads, kPerMount}} {
  base_->dispatcher.add<TakeMessage, CloseAheadMessage>(this);
  identified_ = protocol::read_access_identity(raw_call, &identity_);
}

Openings::~Openings() = default;

void Openings::begin(SessionId id, std::vector<std::string> paths) {
  const Session* session = sessions_->find(id);
  if (!identified_ || session == nullptr || starts_.count(id) != 0) return;
  auto start = std::make_unique<Start>(std::move(paths));
  // A change on another host is to be seen after so long, as with copies.
  start->oldest_ns = std::min(kMostHeldNs, session->options.stale * kSecond);
  Start* const one = starts_.emplace(id, std::move(start)).first->second.get();
  if (one->oldest_ns != 0) fill(id, one);
}

// Publishes how many files are open, and answers those that wait for none.
void Openings::counted(SessionId id) {
  const auto at = starts_.find(id);
  const size_t count = threads_.opening.running(id) + threads_.closing.running(id) +
                       (at != starts_.end() ? at->second->held.size() : 0);
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

void Openings::fill(SessionId id, Start* start) {
  if (*start->over) return;
  for (std::optional<uint32_t> file = start->window.next(); file; file = start->window.next()) {
    const auto result = std::make_shared<Opened>();
    threads_.opening.run(
        id, kNoMount,
        [result, path = start->paths[*file], over = start->over] {
          if (*over) return;
          result->began_ns = now_ns();
          struct stat about {};
          result->fd = open_regular(path, &about);
          result->took_ns = now_ns() - result->began_ns;
          // The job's own flags would be none, too: all of open()'s that are allowed here are of
          // the descriptor.
          if (result->fd && fcntl(result->fd.get(), F_SETFL, 0) != 0) result->fd.reset();
          result->about = {about.st_dev, about.st_ino,
                           about.st_ctim.tv_sec * int64_t{1'000'000'000} + about.st_ctim.tv_nsec};
        },
        [this, id, file = *file, result] {
          opened(id, file, std::move(*result));
          counted(id);
        });
  }
  counted(id);
}

void Openings::opened(SessionId id, uint32_t file, Opened result) {
  const auto at = starts_.find(id);
  const Session* session = sessions_->find(id);
  if (at == starts_.end() || session == nullptr || *at->second->over) {
    close(id, &result);
    return;
  }
  Start* const start = at->second.get();
  protocol::Header& header = session->memory.get()->header;
  uint32_t place = 0;
  while (place < protocol::kOpenedAhead &&
         header.opened_ahead[place].load(std::memory_order_relaxed) != 0) {
    ++place;
  }
  const bool cheap = result.fd && result.took_ns < kWorthNs;
  if (!result.fd || cheap || !start->window.holds(file) || place == protocol::kOpenedAhead) {
    start->window.release(file);
    start->cheap += cheap ? 1 : 0;
    close(id, &result);
    if (start->cheap >= kMostCheap) {
      end(id);
    } else {
      fill(id, start);
    }
    return;
  }
  result.place = place;
  start->held[file] = std::move(result);
  header.opened_ahead[place].store(hash_of(start->paths[file]), std::memory_order_release);
}

// The file is not to be taken any more.
void Openings::withdraw(SessionId id, Start* start, uint32_t file) {
  start->window.release(file);
  const auto at = start->held.find(file);
  if (at == start->held.end()) return;
  if (const Session* session = sessions_->find(id)) {
    session->memory.get()->header.opened_ahead[at->second.place].store(0,
                                                                       std::memory_order_relaxed);
  }
  close(id, &at->second);
  start->held.erase(at);
  counted(id);
}

void Openings::follow(SessionId id, Start* start, uint32_t file) {
  std::vector<uint32_t> closed;
  start->window.passed(file, &closed);
  for (const uint32_t one : closed) withdraw(id, start, one);
  fill(id, start);
}

void Openings::handle(const Peer& peer, const TakeMessage& message, std::vector<UniqueFd> /*fds*/) {
  const Session* session =
      sessions_->find_or_refuse(peer, message.take.session, message.take.token);
  if (session == nullptr) return;
  const SessionId id = session->id;
  const auto at = starts_.find(id);
  Start* const start = at != starts_.end() ? at->second.get() : nullptr;
  const std::optional<uint32_t> file =
      start != nullptr ? start->find(hash_of(message.path)) : std::nullopt;
  const auto held = file ? start->held.find(*file) : decltype(start->held.find(0)){};
  // A descriptor gives access: only to one that has it anyway, by what the kernel reports.
  if (!file || held == start->held.end() || start->paths[*file] != message.path ||
      held->second.began_ns + start->oldest_ns < now_ns() ||
      !(message.take.identity == identity_) || !shares_paths(peer.pid) ||
      !shares_rights(peer.pid, message.take.thread)) {
    base_->server.send(peer.connection, MessageKind::kDone, {});
    return;
  }
  if (!base_->server.hand_over(peer.connection, MessageKind::kFileTaken,
                               std::as_bytes(std::span(&held->second.about, 1)), held->second.fd)) {
    base_->server.send(peer.connection, MessageKind::kDone, {});
    return;
  }
  withdraw(id, start, *file);
  follow(id, start, *file);
}

void Openings::handle(const Peer& peer, const CloseAheadMessage& message,
                      std::vector<UniqueFd> /*fds*/) {
  const Session* session =
      sessions_->find_or_refuse(peer, message.start.session, message.start.token);
  if (session == nullptr) return;
  const SessionId id = session->id;
  waiting_.emplace(id, peer.connection);
  end(id);
  counted(id);
}

void Openings::tick(uint64_t now) {
  std::vector<SessionId> over;
  for (const auto& [id, start] : starts_) {
    const Session* session = sessions_->find(id);
    if (session == nullptr || start->began_ns + kLongestStartNs < now) {
      over.push_back(id);
      continue;
    }
    std::vector<uint32_t> old;
    for (const auto& [file, held] : start->held) {
      if (held.began_ns + start->oldest_ns < now) old.push_back(file);
    }
    for (const uint32_t file : old) withdraw(id, start.get(), file);
    const uint64_t last =
        session->memory.get()->header.start_opened.load(std::memory_order_relaxed);
    if (last == start->followed || *start->over) continue;
    start->followed = last;
    if (const std::optional<uint32_t> file = start->find(last)) follow(id, start.get(), *file);
  }
  for (const SessionId id : over) end(id);
}

// What has begun is not begun again: the session's entry stays.
void Openings::end(SessionId id) {
  const auto at = starts_.find(id);
  if (at == starts_.end()) return;
  Start* const start = at->second.get();
  *start->over = true;
  std::vector<uint32_t> files;
  for (const auto& [file, held] : start->held) files.push_back(file);
  for (const uint32_t file : files) withdraw(id, start, file);
}

void Openings::remove_session(SessionId id) {
  end(id);
  starts_.erase(id);
  waiting_.erase(id);
}

void Openings::close(SessionId id, Opened* file) {
  if (!file->fd) return;
  const auto fd = std::make_shared<UniqueFd>(std::move(file->fd));
  threads_.closing.run(
      id, file->about.device, [fd]() { fd->reset(); }, [this, id] { counted(id); });
}

}  // namespace sluice::optimizer
