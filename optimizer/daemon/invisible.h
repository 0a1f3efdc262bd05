// Detaches the optimizer from the job that started it, so that it outlives the job unnoticed.
#pragma once

namespace sluice::optimizer {

// Resets inherited process state: signal mask and dispositions, umask, working folder and limits
// (RLIMIT_NOFILE, RLIMIT_CPU and RLIMIT_FSIZE to their hard limits, no core dumps). With `detach`
// also begins a session and points descriptors 0 to 2 to /dev/null. REQUIRES: called first, while
// single-threaded: until then 0 to 2 may be closed, and no file may become one of them.
void become_invisible(bool detach);

}  // namespace sluice::optimizer
