// One-line messages on the job's standard error, each beginning with "sluice: ".
//
// They go to the file that was standard error when the library was loaded, or nowhere: a job
// that closed its descriptors and reuses number 2 for a file of its own must not find our words
// in it. Not async-signal-safe but for say_raw.
#pragma once

#include <cstddef>

#include "preload/base/settings.h"

namespace sluice::preload {

void remember_stderr();  // constructor only

__attribute__((format(printf, 2, 3))) void say(LogLevel level, const char* format, ...);

// Writes text as it is; async-signal-safe.
void say_raw(const char* text, size_t length);

}  // namespace sluice::preload
