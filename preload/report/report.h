// What is said when a process ends.
#pragma once

namespace sluice::preload {

// Once a process, from the destructor or from _exit(): the end-of-run line (or file), and the
// goodbye that lets the optimizer close its files. In a vfork child nothing happens. Nothing in
// processes that met no data.
void process_ends();

// Before a fork: memory in which children leave their figures.
void prepare_ledger();

// A fork's child ends its own run: its parent's line is not its to say.
void report_after_fork();

}  // namespace sluice::preload
