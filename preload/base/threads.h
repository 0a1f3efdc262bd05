// The signal masks of the process's other threads, as the kernel has them.
#pragma once

#include "preload/base/sys.h"

namespace sluice::preload {

// Whether another thread of this process blocks one of `signals` on the application's account.
// What libc or this library blocks for a moment does not count; libc's is waited for, a few
// milliseconds at most, and counts if it stays. True also if the kernel does not say. Blocks for a
// system call or three a thread; not from a handler.
bool others_block(sys::SignalSet signals);

}  // namespace sluice::preload
