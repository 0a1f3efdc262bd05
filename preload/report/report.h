// The report when a process ends.
#pragma once

namespace sluice::preload {

// Once a process, from the destructor or from _exit(): prints the end-of-run line, writes the
// report file, and ends the session so that the optimizer closes its files. Without effect in a
// vfork child, and in processes that read no data.
void process_ends();

// Before a fork: maps shared memory in which children store their metrics.
void prepare_ledger();

// In a fork's child: starts metrics of its own, without those that the parent reports.
void report_after_fork();

}  // namespace sluice::preload
