// Starts the optimizer without a side effect that the job can observe.
#pragma once

namespace sluice::preload {

// Runs `program` as a daemon without a parent. It inherits no descriptor, session, controlling
// terminal, working directory, environment or signal mask of the job, and leaves the job no zombie.
// argv is NULL-terminated. Returns 0, or the errno of what failed. REQUIRES: all signals blocked.
int launch_daemon(const char* program, const char* const* argv);

}  // namespace sluice::preload
