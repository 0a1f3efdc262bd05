// What is said when a process ends.
#pragma once

#include <atomic>

namespace sluice::preload {

// Once a process, from the destructor or from _exit(): the end-of-run line (or file), and the
// goodbye that lets the optimizer close its files. In a vfork child nothing happens. Nothing in
// processes that met no data.
void process_ends();

// Whether this process has counted anything or had a session; until then process_ends() is a load.
extern std::atomic<bool> g_something_to_report;

// Before a fork: memory in which children leave their figures.
void prepare_ledger();

// A fork's child ends its own run: its parent's line is not its to say.
void report_after_fork();

}  // namespace sluice::preload
