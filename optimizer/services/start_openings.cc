#include "optimizer/services/start_openings.h"

#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>

#include "optimizer/io/clock.h"
#include "policy/folders/open_window.h"
#include "protocol/path_hash.h"

namespace sluice::optimizer {

using policy::OpenWindow;
using policy::SessionId;

namespace {

constexpr uint64_t kLongestStartNs = 60'000'000'000;  // as the library's

}  // namespace

struct StartOpenings::Start {
  explicit Start(std::vector<std::string> list)
      : paths(std::move(list)), window(static_cast<uint32_t>(paths.size())) {
    for (uint32_t file = 0; file < paths.size(); ++file)
      by_hash.emplace(protocol::path_hash(paths[file].data(), paths[file].size()), file);
  }
  const std::vector<std::string> paths;
  std::unordered_map<uint64_t, uint32_t> by_hash;  // to the file
  std::unordered_map<uint32_t, uint64_t> took_ns;  // of each file that is held: to open it
  OpenWindow window;
  uint64_t began_ns = now_ns(), followed = 0;  // hash of the file that the job opened last
  const std::shared_ptr<std::atomic<bool>> over = std::make_shared<std::atomic<bool>>(false);

  std::optional<uint32_t> find(uint64_t hash) const {
    const auto at = by_hash.find(hash);
    return at != by_hash.end() ? std::optional(at->second) : std::nullopt;
  }
  std::optional<uint32_t> find(const std::string& path) const {
    const auto file = find(protocol::path_hash(path.data(), path.size()));
    return file && paths[*file] == path ? file : std::nullopt;
  }
};

StartOpenings::StartOpenings(const Sessions* sessions, Openings* openings)
    : sessions_(sessions), openings_(openings) {
  openings_->on_gone.push_back(
      [this](SessionId id, const std::string& path, const Openings::Gone& how) {
        gone(id, path, how.how == Openings::How::kTaken);
      });
  openings_->on_close_all = [this](SessionId id) { end(id); };
}

StartOpenings::~StartOpenings() = default;

void StartOpenings::begin(SessionId id, std::vector<std::string> paths) {
  if (starts_.count(id) != 0 || openings_->wanted(id) == 0) return;
  fill(id, starts_.emplace(id, std::make_unique<Start>(std::move(paths))).first->second.get());
}

void StartOpenings::fill(SessionId id, Start* start) {
  while (!*start->over && openings_->wanted(id) != 0) {
    const std::optional<uint32_t> file = start->window.next();
    if (!file) break;
    const auto result = std::make_shared<OpenedFile>();
    openings_->threads().opening.run(
        id, policy::unknown_mount(id),  // files to be opened may lie on several mounts
        [result, path = start->paths[*file], over = start->over] {
          if (!*over) *result = open_ahead(path, 1);
        },
        [this, id, file = *file, result] {
          opened(id, file, std::move(*result));
          openings_->count(id);
        });
  }
  openings_->count(id);
}

void StartOpenings::opened(SessionId id, uint32_t file, OpenedFile result) {
  const auto at = starts_.find(id);
  Start* const start = at != starts_.end() ? at->second.get() : nullptr;
  if (start == nullptr || *start->over || !start->window.holds(file)) {
    openings_->close(id, std::move(result));
    return;
  }
  const uint64_t took_ns = result.took_ns;
  if (openings_->offer(id, start->paths[file], std::move(result))) {
    start->took_ns[file] = took_ns;
    return;
  }
  start->window.release(file);
  fill(id, start);
}

void StartOpenings::gone(SessionId id, const std::string& path, bool taken) {
  const auto at = starts_.find(id);
  if (at == starts_.end()) return;
  const std::optional<uint32_t> file = at->second->find(path);
  if (!file) return;
  at->second->window.release(*file);
  const auto took = at->second->took_ns.extract(*file);
  if (taken && took && on_taken) on_taken(id, *file, took.mapped());
  if (taken) follow(id, at->second.get(), *file);
}

void StartOpenings::follow(SessionId id, Start* start, uint32_t file) {
  std::vector<uint32_t> closed;
  start->window.passed(file, &closed);
  for (const uint32_t one : closed) openings_->withdraw(id, start->paths[one]);
  fill(id, start);
}

void StartOpenings::tick(uint64_t now) {
  for (const auto& [id, start] : starts_) {
    const Session* session = sessions_->find(id);
    if (*start->over || session == nullptr) continue;
    if (start->began_ns + kLongestStartNs < now) {
      end(id);
      continue;
    }
    const uint64_t last =
        session->memory.get()->header.start_opened.load(std::memory_order_relaxed);
    if (last == start->followed) continue;
    start->followed = last;
    if (const std::optional<uint32_t> file = start->find(last)) follow(id, start.get(), *file);
  }
}

// What has begun is not begun again: the session's entry stays.
void StartOpenings::end(SessionId id) {
  const auto at = starts_.find(id);
  if (at == starts_.end()) return;
  Start* const start = at->second.get();
  *start->over = true;
  for (const std::string& path : start->paths) openings_->withdraw(id, path);
}

void StartOpenings::remove_session(SessionId id) {
  end(id);
  starts_.erase(id);
}

}  // namespace sluice::optimizer
