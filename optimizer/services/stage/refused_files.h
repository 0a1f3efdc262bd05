// Files of which no copy may be made. Core thread only.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "policy/util/ids.h"

namespace sluice::optimizer {

// Files of which no copy may be made, because a session may write to them unnoticed.
class RefusedFiles {
 public:
  // Until the session has ended. Files beyond a limit per session are ignored.
  void refuse(policy::SessionId session, uint64_t device, uint64_t inode);
  void end_session(policy::SessionId session) { refused_.erase(session); }
  bool contains(uint64_t device, uint64_t inode) const;

 private:
  std::map<policy::SessionId, std::set<std::pair<uint64_t, uint64_t>>> refused_;  // by session
};

}  // namespace sluice::optimizer
