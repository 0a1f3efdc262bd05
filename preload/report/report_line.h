// The end-of-run line: the wait that was avoided, what came from memory, and what was not helped.
// Beside it, where in the job's code data is read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/metrics.h"

namespace sluice::preload {

// A job's counters, summed over all of its sessions.
struct Totals {
  uint64_t client[protocol::kClientMetricCount] = {};
  uint64_t session[protocol::kSessionMetricCount] = {};
  uint64_t of(protocol::ClientMetric metric) const { return client[static_cast<uint32_t>(metric)]; }
  uint64_t of(protocol::SessionMetric metric) const {
    return session[static_cast<uint32_t>(metric)];
  }
};

// Whether the job's own counters show data, and not only of what any program may have: waits
// (of reads of its own program, for example), faults.
bool met_data(const Totals& totals);

// Prints the line on the job's standard error; nothing for a job that read no data. Called once, by
// the process that loaded the library, when it ends.
void say_line(const Totals& totals);

// The report of SLUICE_CALLSITES, at the end of a process.
void report_callsites();

}  // namespace sluice::preload
