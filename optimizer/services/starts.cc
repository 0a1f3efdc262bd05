#include "optimizer/services/starts.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string_view>
#include <utility>

#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "optimizer/io/memory_file.h"
#include "optimizer/io/peer.h"
#include "optimizer/io/place_store.h"
#include "optimizer/io/start_files.h"

namespace sluice::optimizer {

using policy::PlaceList;
using policy::Savings;
using policy::SessionId;
using protocol::MessageKind;
namespace {

constexpr uint64_t kMostBytes = 8 << 20;    // of paths
constexpr uint64_t kBudgetShare = 4;        // a start may fetch 1/4 of the budget
constexpr uint64_t kLarge = 4 << 20;        // fetched first: a thread is busy with it for long
constexpr const char* kName = "start of ";  // and the command: the list's name

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// What is done, in this order, many at a time: a folder is listed, a path is looked up, or
// (neither) a file is fetched.
struct Action {
  std::string folder, looked_up;
  uint32_t file = 0;  // that it is done for
};

}  // namespace

struct Starts::Fetch {
  PlaceList list;
  std::vector<std::vector<PlaceList::Part>> parts;  // by file
  std::vector<Action> actions;
  uint64_t most = 0;  // bytes
  // Of each file, ns: to fetch it, and to look up what is looked up for it.
  std::vector<std::atomic<uint64_t>> fetched_ns, looked_up_ns;
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> bytes{0}, files{0};
  std::atomic<bool> stop{false};

  void prepare();
  void add_folder(const std::string& path, uint32_t file, std::set<std::string>* seen) {
    if (!path.empty() && seen->insert(path).second) actions.push_back({path, "", file});
  }
  void work() {
    while (!stop && bytes < most) {
      const size_t at = next++;
      if (at >= actions.size()) return;
      const Action& action = actions[at];
      if (!action.folder.empty()) {
        list_start_folder(action.folder);
        continue;
      }
      const uint64_t began = now_ns();
      if (!action.looked_up.empty()) {
        look_up_start_file(action.looked_up);
        looked_up_ns[action.file] += now_ns() - began;
        continue;
      }
      const uint64_t read = fetch_start_file(list.files[action.file], parts[action.file]);
      fetched_ns[action.file] += now_ns() - began;
      bytes += read;
      files += read != 0 ? 1 : 0;
    }
  }
};

void Starts::Fetch::prepare() {
  parts.resize(list.files.size());
  fetched_ns = std::vector<std::atomic<uint64_t>>(list.files.size());
  looked_up_ns = std::vector<std::atomic<uint64_t>>(list.files.size());
  for (const PlaceList::Part& part : list.parts) {
    if (part.whole == 0) parts[part.file].push_back(part);
  }
  std::vector<uint32_t> order(list.files.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_partition(order.begin(), order.end(), [this](uint32_t file) {
    uint64_t sum = 0;
    for (const PlaceList::Part& part : parts[file]) sum += part.length;
    return sum > kLarge;
  });
  std::set<std::string> seen, suffixes{".abi3.so", ".so"};
  for (const PlaceList::File& file : list.files) suffixes.insert(extension_suffix(file.path));
  suffixes.erase("");
  for (const uint32_t file : order) {
    const std::string folder = folder_of(list.files[file].path);
    // A module's source, whose age its code is compared with, lies in the folder above.
    if (folder.ends_with("/__pycache__")) add_folder(folder_of(folder), file, &seen);
    add_folder(folder, file, &seen);
    const std::string source = source_of_module(list.files[file].path);
    if (!source.empty()) actions.push_back({"", source, file});
    for (std::string& tried : tried_before_package(list.files[file].path, suffixes)) {
      actions.push_back({"", std::move(tried), file});
    }
    actions.push_back({"", "", file});
  }
}

struct Starts::Making {
  SessionId session{};
  std::string folder, name;
  std::vector<std::string> paths;
  std::vector<PlaceList> found;  // of each path
  bool no_cachestat = false;
  std::atomic<size_t> next{0};
  unsigned left = 0;  // threads; core thread only

  void work() {
    for (size_t at = next++; at < paths.size(); at = next++) {
      add_start_file(paths[at], no_cachestat, &found[at]);
    }
  }
};

Starts::Starts(const Service& service, Openings* openings)
    : Service(service),
      openings_(sessions_, openings),
      threads_(base_, sessions_, 2 * kThreads, kThreads) {
  base_->dispatcher.add<StartMessage, StartedMessage>(this);
  openings_.on_taken = [this](SessionId id, uint32_t file, uint64_t took_ns) {
    taken(id, file, took_ns);
  };
}

// Paths of an earlier run are opened for it: it must be one that could have named them itself.
Session* Starts::may_use(const Peer& peer, uint64_t id, uint64_t token) {
  Session* session = sessions_->find_or_refuse(peer, id, token);
  if (session == nullptr) return nullptr;
  if (session->options.places.empty() || !session->options.prefetch || !shares_paths(peer.pid)) {
    base_->server.refuse(peer.connection, "starts are not stored for this session");
    return nullptr;
  }
  return session;
}

void Starts::handle(const Peer& peer, const StartMessage& message, std::vector<UniqueFd> /*fds*/) {
  Session* session = may_use(peer, message.start.session, message.start.token);
  if (session == nullptr) return;
  base_->server.send(peer.connection, MessageKind::kDone, {});
  const SessionId id = session->id;
  if (!fetches_.try_emplace(id).second) return;
  auto list = std::make_shared<PlaceList>();
  threads_.run(
      id, mount_key(session->options.places),
      [list, folder = session->options.places, name = kName + message.command] {
        std::string problem;
        auto found = PlaceStore{folder}.load(name, kStartFiles, &problem);
        if (!problem.empty()) say(Level::kWarn, "what an earlier start opened: {}", problem);
        if (found) *list = std::move(*found);
      },
      [this, id, list] { loaded(id, std::move(*list)); });
}

void Starts::loaded(SessionId id, PlaceList list) {
  if (list.files.empty() || sessions_->find(id) == nullptr) return;
  say(Level::kInfo, "{} files are fetched ahead: {}", list.files.size(), list.name);
  auto fetch = std::make_shared<Fetch>();
  fetch->list = std::move(list);
  fetch->most = plans_->scheduler.accounts().budget() / kBudgetShare;
  fetch->prepare();
  fetches_[id] = fetch;
  std::vector<std::string> paths;
  for (const PlaceList::File& file : fetch->list.files) paths.push_back(file.path);
  openings_.begin(id, std::move(paths));
  const auto threads = static_cast<unsigned>(std::min<size_t>(kThreads, fetch->actions.size()));
  for (unsigned i = 0; i < threads; ++i) {
    threads_.run(
        id, policy::unknown_mount(id), [fetch] { fetch->work(); },
        [this, id, fetch] {
          if (Session* session = sessions_->find(id)) session->counts.start_files = fetch->files;
        });
  }
}

// What the job would have waited for, one after the other: each file is opened by a thread here and
// fetched by another, which both opens and reads it.
void Starts::taken(SessionId id, uint32_t file, uint64_t took_ns) {
  const auto at = fetches_.find(id);
  Savings* const savings = plans_->scheduler.accounts().savings(id);
  if (at == fetches_.end() || at->second == nullptr || savings == nullptr) return;
  const Fetch& fetch = *at->second;
  savings->opened(std::max<uint64_t>(took_ns, fetch.fetched_ns[file]) + fetch.looked_up_ns[file]);
}

void Starts::handle(const Peer& peer, const StartedMessage& message, std::vector<UniqueFd> fds) {
  const protocol::Samples& about = message.samples;
  Session* session = may_use(peer, about.session, about.token);
  if (session == nullptr) return;
  std::string text(about.bytes <= kMostBytes ? about.bytes : 0, '\0');
  if (fds.size() != 1 || !is_memory(fds.front().get()) || text.size() < 2 ||
      !is_as_long(fds.front().get(), text.size()) ||
      !read_memory(fds.front().get(), text.data(), text.size()) || text.back() != '\0') {
    base_->server.refuse(peer.connection, "what a start opened comes in one memfd");
    return;
  }
  std::string_view rest = text;
  const std::string_view command = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(command.size() + 1);
  std::vector<std::string_view> paths;
  const auto ends = static_cast<uint64_t>(std::count(rest.begin(), rest.end(), '\0'));
  if (about.count > ends || !parse_paths(rest, about.count, &paths)) {
    base_->server.refuse(peer.connection, "invalid paths");
    return;
  }
  base_->server.send(peer.connection, MessageKind::kDone, {});
  auto making = std::make_shared<Making>();
  making->session = session->id;
  making->folder = session->options.places;
  making->name = kName + std::string(command);
  making->no_cachestat = base_->settings.no_cachestat;
  std::set<std::string_view> seen;
  for (const std::string_view path : paths) {
    if (seen.insert(path).second) making->paths.emplace_back(path);
  }
  making->found.resize(making->paths.size());
  making->left = kThreads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads_.run(
        policy::kNoSession, policy::unknown_mount(making->session), [making] { making->work(); },
        [this, making] {
          if (--making->left == 0) store(making);
        });
  }
}

void Starts::store(const std::shared_ptr<Making>& making) {
  PlaceList list;
  list.name = making->name;
  list.samples = kStartFiles;
  for (PlaceList& one : making->found) {
    if (one.files.empty() || list.files.size() >= kStartFiles) continue;
    const auto number = static_cast<uint32_t>(list.files.size());
    list.files.push_back(std::move(one.files.front()));
    for (PlaceList::Part part : one.parts) {
      part.file = part.sample = number;
      list.parts.push_back(part);
    }
  }
  if (list.files.empty()) return;  // nothing of it was on slow storage
  threads_.run(
      policy::kNoSession, mount_key(making->folder),
      [list = std::move(list), folder = making->folder] {
        std::string problem;
        if (PlaceStore{folder}.save(list, &problem)) {
          say(Level::kInfo, "{} files are stored: {}", list.files.size(), list.name);
        } else {
          say(Level::kWarn, "what a start opened is not stored: {}", problem);
        }
      },
      [] {});
}

void Starts::remove_session(SessionId session) {
  openings_.remove_session(session);
  const auto at = fetches_.find(session);
  if (at == fetches_.end()) return;
  if (at->second != nullptr) at->second->stop = true;
  fetches_.erase(at);
}

}  // namespace sluice::optimizer
