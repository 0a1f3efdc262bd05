// What a killed optimizer leaves behind.
#pragma once

namespace sluice::preload {

// At the end of a job whose optimizer was killed: removes its stage, which nobody may ever come to
// do otherwise. Without effect while somebody looks after it. Bounded by the number of copies.
void remove_leftover_stage();

}  // namespace sluice::preload
