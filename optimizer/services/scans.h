// Lists folders ahead of jobs that walk through a tree on slow storage, many at a time, as
// policy/folders/scan_plan.h decides. A job whose folders are in memory when it comes reports none.
// Core thread only; folders are listed by threads of an executor of its own, so that a file system
// that hangs delays nothing else.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "optimizer/io/list_folder.h"
#include "optimizer/services/service.h"
#include "policy/folders/scan_plan.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Scans : Service {
 public:
  explicit Scans(const Service& service);

  void handle(const Peer& peer, const ListedMessage& message, std::vector<UniqueFd> fds);
  // Closes the folders that no other session walks through.
  void remove_session(policy::SessionId session);
  // How many calls are under way that hold a mount for no session.
  size_t closing() const;
  std::function<void()> on_all_closed;  // one of these has ended

 private:
  static constexpr unsigned kThreads = 32;  // listings under way, of one mount

  void opened(policy::SessionId session, uint64_t took_ns, std::optional<FolderAbove> above);
  void listed(const policy::ScanPlan::Task& task, std::optional<FolderListing> listing);
  void start();
  unsigned under_way(uint64_t device) const;
  void ended(policy::FolderKey base);
  void close_unused();

  Executor threads_{2 * kThreads, kThreads};
  policy::ScanPlan plan_;
  // Of the plan's scans; open while one of its folders is listed.
  std::map<policy::FolderKey, std::shared_ptr<UniqueFd>> bases_;
  std::map<policy::FolderKey, unsigned> by_base_;  // listings under way
  unsigned opening_ = 0;                           // folders that jobs passed
};

}  // namespace sluice::optimizer
