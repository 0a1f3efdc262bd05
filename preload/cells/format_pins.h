// Pins those of printf's string arguments that lie in protected mappings.
#pragma once

#include <cstdarg>

#include "preload/cells/pins.h"

namespace sluice::preload {

// Pins the format and every %s argument. `arguments` is not advanced for the caller. Costs one
// load while nothing is protected.
void pin_format(Pins& pins, const char* format, va_list arguments);

}  // namespace sluice::preload
