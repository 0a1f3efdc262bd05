// Asking the optimizer for its stage.
#pragma once

namespace sluice::preload {

// Once a session, if files may be staged at all: maps the index, so that this process and those
// that it forks find copies. Not from a signal handler; any thread.
void want_stage();

}  // namespace sluice::preload
