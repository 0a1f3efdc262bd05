// One question to the optimizer and its answer, within the process's patience (patience.h). The
// state is guarded by the session's lock (client.cc): REQUIRES it held, and all signals blocked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "preload/session/patience.h"
#include "preload/session/place.h"
#include "preload/session/wire.h"

namespace sluice::preload {

extern Patience g_patience;
extern Place g_place;    // of the optimizer that is asked
extern Answer g_answer;  // the last one; its descriptor belongs to the caller

// What one question waits for at most: with less in the budget, that. Thread-safe.
inline uint64_t answer_ns() { return g_patience.most() / 2; }
// Likewise, for one that is asked regardless of the budget, and perhaps several times.
inline uint64_t insisted_ns() { return std::min(answer_ns(), Patience::kMost / 2); }

// Adjusts g_patience after an answer or its absence. `waited_ns`: the time wasted if kLate.
void learn_from(Asked asked, uint64_t waited_ns);

// Asks, and waits as long as the process's patience allows, at most `most` ns; with `insist` so
// long in any case.
Asked ask_patiently(protocol::MessageKind kind, const void* body, size_t size, const void* text,
                    size_t text_size, int fd, uint64_t most = answer_ns(), bool insist = false);

}  // namespace sluice::preload
