// Files that a command is about to open as it starts, opened ahead of it and handed over when it
// does: an open on a network mount takes a round trip, whatever is in the page cache. What is
// handed over is the original. Core thread only; files are opened and closed by threads of an
// executor of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

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
  ~Openings();

  // From now on files are held open ahead of the session: `paths`, in the order in which an earlier
  // start opened them. No effect if there are some already.
  void begin(policy::SessionId session, std::vector<std::string> paths);
  void handle(const Peer& peer, const TakeMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const CloseAheadMessage& message, std::vector<UniqueFd> fds);
  // Follows the job. Several times a second.
  void tick(uint64_t now_ns);
  // Closes its files.
  void remove_session(policy::SessionId session);
  // They hold mounts of sessions that have ended, as long as closing() of one is not 0.
  struct Threads {
    SessionThreads opening, closing;
  };
  Threads& threads() { return threads_; }
  const Threads& threads() const { return threads_; }

 private:
  static constexpr unsigned kThreads = 8;
  static constexpr unsigned kPerMount = 2;  // that close files

  // A file that was opened, or that could not be.
  struct Opened {
    UniqueFd fd;
    protocol::TakenFile about{};
    uint64_t began_ns = 0, took_ns = 0;
    uint32_t place = 0;  // in Header::opened_ahead
  };
  struct Start;

  void follow(policy::SessionId session, Start* start, uint32_t file);
  void fill(policy::SessionId session, Start* start);
  void opened(policy::SessionId session, uint32_t file, Opened result);
  void withdraw(policy::SessionId session, Start* start, uint32_t file);
  void end(policy::SessionId session);
  void close(policy::SessionId session, Opened* file);
  void counted(policy::SessionId session);

  Threads threads_;
  protocol::AccessIdentity identity_{};  // this process's
  bool identified_ = false;
  std::map<policy::SessionId, std::unique_ptr<Start>> starts_;
  std::multimap<policy::SessionId, uint64_t> waiting_;  // connections, for all to be closed
};

}  // namespace sluice::optimizer
