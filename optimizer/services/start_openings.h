// Opens the files of a command's start ahead of it: of the list in the order in which an earlier
// start opened them, those in front of the one that the job opened last. Core thread only; files
// are opened by openings.h's threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optimizer/services/openings.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class StartOpenings {
 public:
  // Both outlive this.
  StartOpenings(const Sessions* sessions, Openings* openings);
  StartOpenings(const StartOpenings&) = delete;
  StartOpenings& operator=(const StartOpenings&) = delete;
  ~StartOpenings();

  // The job took the file paths[file], which had taken `took_ns` to open.
  std::function<void(policy::SessionId session, uint32_t file, uint64_t took_ns)> on_taken;
  // No effect if the session has begun before.
  void begin(policy::SessionId session, std::vector<std::string> paths);
  // Follows the job. Several times a second.
  void tick(uint64_t now_ns);
  void remove_session(policy::SessionId session);

 private:
  struct Start;

  void follow(policy::SessionId session, Start* start, uint32_t file);
  void fill(policy::SessionId session, Start* start);
  void opened(policy::SessionId session, uint32_t file, OpenedFile result);
  void gone(policy::SessionId session, const std::string& path, bool taken);
  void end(policy::SessionId session);

  const Sessions* const sessions_;
  Openings* const openings_;
  std::map<policy::SessionId, std::unique_ptr<Start>> starts_;
};

}  // namespace sluice::optimizer
