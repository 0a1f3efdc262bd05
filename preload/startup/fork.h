// Forks that libc makes: which locks must be free in the child, and which state is reset there.
#pragma once

namespace sluice::preload {

void watch_forks();  // constructor only, once

}  // namespace sluice::preload
