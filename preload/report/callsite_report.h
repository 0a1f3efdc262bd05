// At the end of a process, with SLUICE_CALLSITES.
#pragma once

namespace sluice::preload {

void report_callsites();

}  // namespace sluice::preload
