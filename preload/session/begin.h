// The begin of a session: an optimizer is found or started, and its shared memory mapped.
#pragma once

#include <cstdint>

#include "preload/session/exchange.h"

namespace sluice::preload {

struct SessionKey {  // part of every question
  uint64_t id = 0;
  uint64_t token = 0;
};

enum class Wanted : uint8_t {
  kStarted,  // without an optimizer one is started; a failure prints a warning, once a process
  kRunning,  // one that runs already, or none; no warning
};

// kAnswered: the session has begun, its connection is published and `key` is set. Otherwise why it
// has not; kBroken also stands for what no later attempt will mend. `insist`: waits for one that
// runs regardless of g_patience. REQUIRES: may_connect(); the session's lock is held, and all
// signals are blocked.
Asked begin_session(Wanted wanted, bool insist, SessionKey* key);

}  // namespace sluice::preload
