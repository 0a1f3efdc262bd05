// Requests the optimizer's stage.
#pragma once

namespace sluice::preload {

// Once a session, if files may be staged at all: maps the index, so that this process and its fork
// children find copies. Not from a signal handler; any thread.
void want_stage();

}  // namespace sluice::preload
