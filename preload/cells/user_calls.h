// What syscall(2), called by number, is about to hand to the kernel or to do to mappings.
#pragma once

#include "preload/cells/pins.h"

namespace sluice::preload {

// Pins the buffers of the calls that can come up short, and disarms mappings that the call
// changes. Any thread.
void pin_system_call(Pins& pins, long number, const long (&words)[6]);

}  // namespace sluice::preload
