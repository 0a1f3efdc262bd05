// What services work with: each is derived from this, and has beside it state of its own and the
// other services that it calls. Core thread only.
#pragma once

#include "optimizer/services/stage/stage.h"
#include "optimizer/services/streams/files.h"
#include "optimizer/sessions/sessions.h"
#include "optimizer/trace/recordings.h"

namespace sluice::optimizer {

struct Service {  // all outlive the services
  Base* base_;
  Plans* plans_;
  Sessions* sessions_;
  Files* files_;
  Recordings* recordings_;
  Stage* stage_;
};

}  // namespace sluice::optimizer
