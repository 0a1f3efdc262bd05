// Forks that libc makes: locks that must be free in the child, and what it begins anew.
#pragma once

namespace sluice::preload {

void watch_forks();  // constructor only, once

}  // namespace sluice::preload
