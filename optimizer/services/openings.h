// Files that a job is about to open, opened ahead of it and handed over when it does: an open on a
// network mount takes a round trip, whatever is in the page cache. What is handed over is the
// original. Core thread only; files are closed by threads of an executor of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "optimizer/io/opened_file.h"
#include "optimizer/services/service.h"
#include "optimizer/services/session_threads.h"
#include "policy/util/ids.h"
#include "protocol/access_identity.h"

namespace sluice::optimizer {

class Openings : Service {
 public:
  explicit Openings(const Service& service);
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;

  // How often each of the session's files is worth opening now: 0 unless its job can take them,
  // takes some of those that it is offered, and there is room; as often as it opens a file.
  unsigned wanted(policy::SessionId session) const;
  // Holds the file until the job takes it, but for seconds at most. False: it is closed instead,
  // since the path is held already, or it was opened so fast that it is not worth a question.
  bool offer(policy::SessionId session, const std::string& path, OpenedFile file);
  // Closes it; no effect if the path is not held.
  void withdraw(policy::SessionId session, const std::string& path);
  // Closes those for whose paths the predicate is true.
  void withdraw_if(policy::SessionId session,
                   const std::function<bool(const std::string& path)>& predicate);
  // Closes a file that was never offered.
  void close(policy::SessionId session, OpenedFile file);
  size_t held(policy::SessionId session) const;  // files
  bool holds(policy::SessionId session, const std::string& path) const;
  // Has the paths looked up again that were not for `older_ns`; what they do not lead to any more
  // is withdrawn. Once their names are not valid in the kernel, an open takes a round trip for each
  // folder.
  void look_up_again(policy::SessionId session, const std::vector<std::string>& paths,
                     uint64_t older_ns);
  // A file is not held any more: the job has taken it, or did not before it was held for too long.
  enum class How : uint8_t { kTaken, kWithdrawn, kExpired };
  struct Gone {
    How how{};
    uint64_t held_ns = 0;  // since its path was looked up
  };
  using OnGone =
      std::function<void(policy::SessionId session, const std::string& path, const Gone& gone)>;
  std::vector<OnGone> on_gone;  // all are called
  // The job is about to do what open files may change: nothing that is opened ahead of a start
  // stays of use, and the opening of files that are under way is waited for.
  std::function<void(policy::SessionId session)> on_close_all;

  void handle(const Peer& peer, const TakeMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const CloseAheadMessage& message, std::vector<UniqueFd> fds);
  // Withdraws what is held for too long. Several times a second.
  void tick(uint64_t now_ns);
  // Closes its files.
  void remove_session(policy::SessionId session);
  // Publishes how many files are open, being opened or being closed, and answers those that wait
  // for none. To be called when one of threads().opening is done.
  void count(policy::SessionId session);

  // They hold mounts of sessions that have ended, as long as closing() of one is not 0.
  struct Threads {
    SessionThreads opening;  // of start_openings.h
    SessionThreads closing;
  };
  Threads& threads() { return threads_; }
  const Threads& threads() const { return threads_; }

 private:
  struct Held {
    std::string path;
    OpenedFile file;
    uint32_t place = 0;   // in Header::opened_ahead
    unsigned opened = 0;  // times by the job
    // When it is closed. Without a descriptor it only shows how often the job opens it.
    uint64_t until_ns = 0;
    uint64_t looked_up_ns = 0;  // when its path began to be looked up last
    bool watched = false;
  };
  struct Ahead {
    std::map<uint64_t, Held> held;  // by path_hash()
    uint64_t cheap = 0, expired = 0, taken = 0;
    uint64_t watched = 0, again = 0;  // taken files whose next opens are seen; these opens
    uint64_t paused_until_ns = 0;
  };

  // 0: nothing may be held open.
  uint64_t longest_ns(const Session& session) const;
  const Held* find(policy::SessionId session, const std::string& path) const;
  void taken(policy::SessionId session, Ahead* ahead, uint64_t hash);
  void opened_again(policy::SessionId session, uint64_t hash);
  static bool next_descriptor(Held* held);
  void gone(policy::SessionId session, uint64_t hash, How how);
  void report_gone(policy::SessionId session, const Held& held, How how) const;

  Threads threads_;
  protocol::AccessIdentity identity_{};  // this process's
  bool identified_ = false;
  std::map<policy::SessionId, Ahead> ahead_;
  std::multimap<policy::SessionId, uint64_t> waiting_;  // connections, for all to be closed
};

}  // namespace sluice::optimizer
