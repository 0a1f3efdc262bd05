#include "optimizer/services/scans.h"

#include <new>
#include <utility>

#include "optimizer/io/log.h"

namespace sluice::optimizer {

using policy::FolderKey;
using policy::ScanPlan;
using policy::SessionId;
using protocol::MessageKind;

Scans::Scans(const Service& service) : Service(service) {
  base_->dispatcher.add<ListedMessage>(this);
}

void Scans::handle(const Peer& peer, const ListedMessage& message, std::vector<UniqueFd> fds) {
  const protocol::Listed& listed = message.listed;
  Session* session = sessions_->find_or_refuse(peer, listed.session, listed.token);
  if (session == nullptr) return;
  if (fds.size() != 1) {
    base_->server.refuse(peer.connection, "a listed message carries one descriptor");
    return;
  }
  if (!session->options.prefetch || !plan_.wants_reports(session->id)) {
    base_->server.refuse(peer.connection, "listing ahead is of no use here");
    return;
  }
  base_->server.send(peer.connection, MessageKind::kDone, {});
  ++opening_;
  threads_.run(policy::unknown_mount(session->id),
               [this, mailbox = base_->loop.mailbox(), id = session->id, took = listed.took_ns,
                passed = std::make_shared<UniqueFd>(std::move(fds.front()))] {
                 auto above =
                     std::make_shared<std::optional<FolderAbove>>(open_above(passed->get()));
                 passed->reset();
                 mailbox->post([this, id, took, above] { opened(id, took, std::move(*above)); });
               });
}

void Scans::opened(SessionId session, uint64_t took_ns, std::optional<FolderAbove> above) {
  --opening_;
  if (!sessions_->all().contains(session)) {
    above.reset();
    if (closing() == 0 && on_all_closed) on_all_closed();
    return;
  }
  if (!above) return;
  plan_.opened(session, above->folder, above->parent, took_ns, now_ns());
  if (plan_.scans(above->parent) && !bases_.contains(above->parent)) {
    bases_.emplace(above->parent, std::make_shared<UniqueFd>(std::move(above->fd)));
  }
  close_unused();
  start();
}

void Scans::start() {
  const ScanPlan::May may = [this](uint64_t device) { return under_way(device) < kThreads; };
  for (ScanPlan::Task task; plan_.next(&task, may);) {
    const auto base = bases_.find(task.base);
    if (base == bases_.end()) continue;
    ++by_base_[task.base];
    threads_.run(task.base.device,
                 [this, mailbox = base_->loop.mailbox(), task, fd = base->second]() mutable {
                   auto listing = std::make_shared<std::optional<FolderListing>>();
                   try {
                     *listing = list_folder(fd->get(), task.path);
                   } catch (const std::bad_alloc&) {  // this one is not listed
                   }
                   fd.reset();
                   mailbox->post([this, task, listing] { listed(task, std::move(*listing)); });
                 });
  }
}

unsigned Scans::under_way(uint64_t device) const {
  unsigned calls = 0;
  for (const auto& [base, count] : by_base_) calls += base.device == device ? count : 0;
  return calls;
}

void Scans::listed(const ScanPlan::Task& task, std::optional<FolderListing> listing) {
  ended(task.base);
  if (listing) {
    say(Level::kDebug, "listed ahead: {} ({} entries)", task.path, listing->entries);
    for (const SessionId id : plan_.sessions(task.base)) {
      if (Session* session = sessions_->find(id)) ++session->counts.folders_listed;
    }
    plan_.listed(task, std::move(listing->subfolders), listing->entries, now_ns());
  }
  start();
}

void Scans::ended(FolderKey base) {
  const auto at = by_base_.find(base);
  if (--at->second == 0) by_base_.erase(at);
  if (!plan_.scans(base) && closing() == 0 && on_all_closed) on_all_closed();
}

size_t Scans::closing() const {
  size_t count = sessions_->empty() ? opening_ : 0;
  for (const auto& [base, calls] : by_base_) {
    if (!plan_.scans(base)) count += calls;
  }
  return count;
}

void Scans::remove_session(SessionId session) {
  plan_.remove_session(session);
  close_unused();
}

void Scans::close_unused() {
  std::erase_if(bases_, [this](const auto& base) { return !plan_.scans(base.first); });
}

}  // namespace sluice::optimizer
