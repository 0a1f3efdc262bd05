// Whether the optimizer has processed all changes of files by processes of this host: then a copy
// equals its original at the moment of the open, not only some milliseconds later.
//
// The kernel queues an inotify event before the call that changed a file returns. So if the
// optimizer's queue is empty, and the optimizer is not processing events taken from it, the copies
// of all files that changed before are dropped. The queue's length is read through a temporary
// descriptor of it (pidfd_getfd): 3 us, whether the optimizer is busy, stopped or dead. Where that
// is not allowed, as in some containers, the optimizer is asked.
#pragma once

#include "protocol/stage.h"

namespace sluice::preload {

// False: a change is not processed yet, or that is unknown; the caller compares with the originals.
// Any thread, not from a signal handler; errno is preserved.
bool changes_settled(const protocol::Stage& stage);

}  // namespace sluice::preload
