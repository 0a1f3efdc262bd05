// The signal masks of the process's other threads, read from the kernel.
#pragma once

#include "preload/base/sys.h"

namespace sluice::preload {

// Whether another thread of this process blocks one of `signals` for the application. Short
// sections in which libc or this library blocks everything do not count; a section of libc's is
// waited for, a few milliseconds at most, and counts if it lasts longer. True also if the kernel
// gives no answer. Makes up to three system calls a thread; not from a handler.
bool others_block(sys::SignalSet signals);

}  // namespace sluice::preload
