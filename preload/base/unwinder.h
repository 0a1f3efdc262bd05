// The process's unwinder (libgcc_s), found when it is needed: the library does not depend on it,
// since loading it costs every program that starts a tenth of a millisecond, and frames of ours
// are unwound by few. It must be the one that pthread_cancel uses, so it is never linked in.
#pragma once

namespace sluice::preload {

// Finds it ahead of a cancellation, which may unwind from within a signal handler. Any thread, not
// from a handler.
void prepare_unwinder();

}  // namespace sluice::preload
