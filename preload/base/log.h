// One-line messages on the job's standard error, each beginning with "sluice: ".
//
// They are written to the file that was standard error when the library was loaded, or not at all:
// a job may close its descriptors and reuse number 2 for a file of its own, which must not receive
// messages. Not async-signal-safe except say_raw().
#pragma once

#include <cstddef>

#include "preload/base/settings.h"

namespace sluice::preload {

void remember_stderr();  // constructor only

__attribute__((format(printf, 2, 3))) void say(LogLevel level, const char* format, ...);

// Writes text unchanged; async-signal-safe.
void say_raw(const char* text, size_t length);

}  // namespace sluice::preload
