// The application's own SIGSEGV action, while the kernel holds ours.
//
// From install_fault_handler() on, sigaction() and its relatives read and write this record for
// SIGSEGV and never the kernel's. Its lock is held with all signals blocked and for a copy only,
// so the handler may take it: the interrupted thread never holds it.
#pragma once

#include <csignal>
#include <cstdint>

namespace sluice::preload {

// Installs our handler if it is not there, takes the application's action into the record, reads
// back. False if the kernel's action is not ours afterwards (somebody swallowed it). Not from a
// handler.
bool install_fault_handler();

// True if SIGSEGV is ours in our books. Async-signal-safe.
bool fault_handler_installed();

// True if the kernel still has our action: a raw system call may have replaced it.
bool fault_handler_intact();

// Copies. With `reset`, the record becomes the default action (SA_RESETHAND) in the same step.
struct sigaction application_action(bool reset_if_one_shot);
void set_application_action(const struct sigaction& action);

// Gives the kernel the default (or ignore) action, for good: the process is about to die of the
// fault, with its own exit status, core and address. Async-signal-safe.
void restore_kernel_action(bool ignore);

// After restore_kernel_action(), when death (or exec) did not come.
void reinstall_fault_handler();

// In a fork's child.
void actions_after_fork();

}  // namespace sluice::preload
