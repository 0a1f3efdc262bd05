// The report of SLUICE_CALLSITES, at the end of a process.
#pragma once

namespace sluice::preload {

void report_callsites();

}  // namespace sluice::preload
