// Whether what other processes of this host changed is known: what makes a copy as good as its
// original at the moment of the open, not some milliseconds later.
//
// The kernel queues an inotify event before the call that changed a file returns. So when nothing
// is queued for the optimizer, and it is not at work on what it took from the queue, the copies of
// all that changed before are gone. The queue is asked for its length itself, by a descriptor of it
// that is the job's for that moment (pidfd_getfd): 3 us, whether the optimizer is busy, stopped or
// dead. Where that is not allowed, as in some containers, the optimizer is asked.
#pragma once

#include "protocol/stage.h"

namespace sluice::preload {

// False: something changed and is not dealt with yet, or that cannot be known; originals are to be
// compared. Any thread, not from a signal handler's; errno is kept.
bool changes_settled(const protocol::Stage& stage);

}  // namespace sluice::preload
