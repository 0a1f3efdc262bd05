// Buffers and mappings that a call through syscall(2) passes to the kernel or changes.
#pragma once

#include "preload/cells/pins.h"

namespace sluice::preload {

// Pins the buffers of calls that may transfer less than requested, and disarms mappings that the
// call changes. Any thread.
void pin_system_call(Pins& pins, long number, const long (&words)[6]);

}  // namespace sluice::preload
