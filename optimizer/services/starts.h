// Fetches what a command opened as it started last, as soon as it starts again: code and libraries
// on a network mount are opened one after the other, each with some round trips. Lists are stored
// where locations of samples are. Core thread only; files are read by threads of an executor of its
// own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optimizer/services/service.h"
#include "optimizer/services/session_threads.h"
#include "optimizer/services/start_openings.h"
#include "policy/samples/place_list.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Starts : Service {
 public:
  // `openings` outlives this.
  Starts(const Service& service, Openings* openings);

  void handle(const Peer& peer, const StartMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const StartedMessage& message, std::vector<UniqueFd> fds);
  // Follows jobs that start. Several times a second.
  void tick(uint64_t now_ns) { openings_.tick(now_ns); }
  // Stops fetching for it.
  void remove_session(policy::SessionId session);
  // They hold mounts of sessions that have ended, as long as closing() is not 0.
  SessionThreads& threads() { return threads_; }
  const SessionThreads& threads() const { return threads_; }
  // How many threads make lists, or store them. A job that ends does not wait for them.
  size_t unsettled() const { return threads_.running(policy::kNoSession); }

 private:
  static constexpr unsigned kThreads = 32;  // of one session

  // Shared with the threads: a start that is fetched, and a list that is made.
  struct Fetch;
  struct Making;

  Session* may_use(const Peer& peer, uint64_t id, uint64_t token);
  void loaded(policy::SessionId session, policy::PlaceList list);
  void taken(policy::SessionId session, uint32_t file, uint64_t took_ns);
  void store(const std::shared_ptr<Making>& making);

  StartOpenings openings_;
  SessionThreads threads_;
  std::map<policy::SessionId, std::shared_ptr<Fetch>> fetches_;
};

}  // namespace sluice::optimizer
