#include "optimizer/services/openings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
  struct Held {
    Opened file;
    uint64_t since_ns = 0;
  };
  std::map<uint32_t, Held> held;               // by file: those that are open
  uint64_t began_ns = now_ns(), followed = 0;  // hash of the file that the job opened last
  uint32_t cheap = 0;

  std::optional<uint32_t> find(uint64_t hash) const {
    const auto at = by_hash.find(hash);
    return at != by_hash.end() ? std::optional(at->second) : std::nullopt;
  }
};

Openings::Openings(const Service& service)
    : Service(service), threads_(base_, sessions_, kThreads) {
  base_->dispatcher.add<TakeMessage>(this);
  identified_ = protocol::read_access_identity(raw_call, &identity_);
}

Openings::~Openings() = default;

void Openings::begin(SessionId id, std::vector<std::string> paths) {
  if (!identified_ || starts_.count(id) != 0) return;
  Start* start = starts_.emplace(id, std::make_unique<Start>(std::move(paths))).first->second.get();
  fill(id, start);
}

void Openings::fill(SessionId id, Start* start) {
  for (std::optional<uint32_t> file = start->window.next(); file; file = start->window.next()) {
    const auto result = std::make_shared<Opened>();
    threads_.run(
        id,
        [result, path = start->paths[*file]] {
          const uint64_t begin_ns = now_ns();
          struct stat about {};
          result->fd = std::make_shared<UniqueFd>(open_regular(path, &about));
          result->took_ns = now_ns() - begin_ns;
          // The job's own flags would be none, too: all of open()'s that are allowed here are of
          // the descriptor.
          if (!*result->fd || fcntl(result->fd->get(), F_SETFL, 0) != 0) result->fd.reset();
          result->about = {about.st_dev, about.st_ino,
                           about.st_ctim.tv_sec * int64_t{1'000'000'000} + about.st_ctim.tv_nsec};
        },
        [this, id, file = *file, result] { opened(id, file, std::move(*result)); });
  }
}

void Openings::opened(SessionId id, uint32_t file, Opened result) {
  const auto at = starts_.find(id);
  const Session* session = sessions_->find(id);
  if (at == starts_.end() || session == nullptr) {
    if (result.fd != nullptr) close(id, std::move(result.fd));
    return;
  }
  Start* const start = at->second.get();
  protocol::Header& header = session->memory.get()->header;
  uint32_t place = 0;
  while (place < protocol::kOpenedAhead &&
         header.opened_ahead[place].load(std::memory_order_relaxed) != 0) {
    ++place;
  }
  const bool wanted = start->window.holds(file) && place < protocol::kOpenedAhead;
  if (result.fd == nullptr || !wanted || result.took_ns < kWorthNs) {
    start->window.release(file);
    if (result.fd != nullptr) {
      start->cheap += result.took_ns < kWorthNs ? 1 : 0;
      close(id, std::move(result.fd));
    }
    if (start->cheap >= kMostCheap) {
      end(id);
    } else {
      fill(id, start);
    }
    return;
  }
  result.place = place;
  start->held[file] = {std::move(result), now_ns()};
  header.opened_ahead[place].store(hash_of(start->paths[file]), std::memory_order_release);
  header.opened_count.fetch_add(1, std::memory_order_relaxed);
}

// The file is not to be taken any more.
void Openings::withdraw(SessionId id, Start* start, uint32_t file) {
  start->window.release(file);
  const auto at = start->held.find(file);
  if (at == start->held.end()) return;
  if (const Session* session = sessions_->find(id)) {
    protocol::Header& header = session->memory.get()->header;
    header.opened_ahead[at->second.file.place].store(0, std::memory_order_relaxed);
    header.opened_count.fetch_sub(1, std::memory_order_relaxed);
  }
  close(id, std::move(at->second.file.fd));
  start->held.erase(at);
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
  const auto at = starts_.find(session->id);
  Start* const start = at != starts_.end() ? at->second.get() : nullptr;
  const std::optional<uint32_t> file =
      start != nullptr ? start->find(hash_of(message.path)) : std::nullopt;
  const auto held = file ? start->held.find(*file) : decltype(start->held.find(0)){};
  // A descriptor gives access: only to one that has it anyway, as far as the kernel tells.
  if (!file || held == start->held.end() || start->paths[*file] != message.path ||
      !(message.take.identity == identity_) || !shares_paths(peer.pid) ||
      !shares_rights(peer.pid)) {
    base_->server.send(peer.connection, MessageKind::kDone, {});
    return;
  }
  const std::shared_ptr<UniqueFd> fd = held->second.file.fd;
  base_->server.hand_over(peer.connection, MessageKind::kFileTaken,
                          std::as_bytes(std::span(&held->second.file.about, 1)), fd);
  withdraw(session->id, start, *file);
  follow(session->id, start, *file);
}

void Openings::tick(uint64_t now) {
  std::vector<SessionId> over;
  for (const auto& [id, start] : starts_) {
    const Session* session = sessions_->find(id);
    if (session == nullptr || now - start->began_ns > kLongestStartNs) {
      over.push_back(id);
      continue;
    }
    std::vector<uint32_t> old;
    for (const auto& [file, held] : start->held) {
      if (now - held.since_ns > kMostHeldNs) old.push_back(file);
    }
    for (const uint32_t file : old) withdraw(id, start.get(), file);
    const uint64_t last =
        session->memory.get()->header.start_opened.load(std::memory_order_relaxed);
    if (last == start->followed) continue;
    start->followed = last;
    if (const std::optional<uint32_t> file = start->find(last)) follow(id, start.get(), *file);
  }
  for (const SessionId id : over) end(id);
}

void Openings::end(SessionId id) {
  const auto at = starts_.find(id);
  if (at == starts_.end()) return;
  std::vector<uint32_t> files;
  for (const auto& [file, held] : at->second->held) files.push_back(file);
  for (const uint32_t file : files) withdraw(id, at->second.get(), file);
  starts_.erase(at);
}

void Openings::remove_session(SessionId id) { end(id); }

void Openings::close(SessionId id, std::shared_ptr<UniqueFd> fd) {
  threads_.run(
      id, [fd = std::move(fd)]() mutable { fd.reset(); }, [] {});
}

}  // namespace sluice::optimizer
