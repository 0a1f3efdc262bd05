// Starting the optimizer so that the job cannot notice.
#pragma once

namespace sluice::preload {

// Runs `program` as a daemon that is nobody's child: no descriptor, no session, no controlling
// terminal, no working folder, no environment, no signal mask and no zombie of the job's.
// argv is NULL-terminated. Returns 0, or the errno of what failed. REQUIRES: all signals blocked.
int launch_daemon(const char* program, const char* const* argv);

}  // namespace sluice::preload
