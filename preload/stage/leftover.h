// Removes the stage of a killed optimizer.
#pragma once

namespace sluice::preload {

// At the end of a job whose optimizer was killed: removes its stage, which else may stay forever.
// Without effect while a live optimizer holds the stage's lock. Bounded by the number of copies.
void remove_leftover_stage();

}  // namespace sluice::preload
