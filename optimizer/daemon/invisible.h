// What makes the optimizer invisible to the job that started it, and keeps it alive afterwards.
#pragma once

namespace sluice::optimizer {

// Resets what a process inherits: signal mask and dispositions, umask, folder, session, process
// title limits (RLIMIT_NOFILE to its hard limit, RLIMIT_CPU and RLIMIT_FSIZE lifted to theirs,
// no core). With `detach` also points descriptors 0 to 2 to /dev/null. Call first, single-threaded.
void become_invisible(bool detach);

}  // namespace sluice::optimizer
