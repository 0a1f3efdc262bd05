// The process's unwinder (libgcc_s), loaded when needed: the library does not depend on it, since
// loading it costs every program a tenth of a millisecond at start, and few programs unwind frames
// of this library. It must be the one that pthread_cancel uses, so it is never linked in.
#pragma once

namespace sluice::preload {

// Loads it before a cancellation, which may unwind from within a signal handler. Any thread, not
// from a handler.
void prepare_unwinder();

}  // namespace sluice::preload
