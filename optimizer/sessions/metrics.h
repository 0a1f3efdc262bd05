// The metrics of sessions, published in their shared memory. Core thread only.
#pragma once

#include "optimizer/sessions/plans.h"
#include "optimizer/sessions/session.h"
#include "optimizer/trace/recordings.h"

namespace sluice::optimizer {

// Brings the metrics of all sessions up to date and publishes them.
void publish_metrics(const SessionMap& sessions, const Recordings& recordings, Plans& plans);

}  // namespace sluice::optimizer
