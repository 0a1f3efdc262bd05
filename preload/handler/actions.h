// The application's own SIGSEGV action, while the kernel holds ours.
//
// From install_fault_handler() on, sigaction() and its relatives read and write a record for
// SIGSEGV and its shadow (mask.h) and never the kernel's actions. Its lock is held with all
// signals blocked and for a copy only, so the handler may take it: the interrupted thread never
// holds it.
#pragma once

#include <csignal>
#include <cstdint>

namespace sluice::preload {

enum class Taken : uint8_t {
  kOurs,
  kLost,     // the kernel's action is not ours: it was swallowed or replaced
  kBlocked,  // some other thread really blocks SIGSEGV: a checkpoint would end the process there
};

// Whether SIGSEGV is ours, or could be. Changes nothing. Not from a handler.
Taken can_take_segv();

// Takes SIGSEGV if it is not ours yet: our handler in the kernel, the application's actions into
// the record, masks of other signals' actions into the kernel's terms (mask.h). The mask of the
// calling thread follows when it leaves its blocked section or calls us next. Not from a handler
// of ours.
Taken install_fault_handler();

// True if SIGSEGV is ours in our books. Async-signal-safe.
bool fault_handler_installed();

// Whether the record holds this signal's action. Async-signal-safe.
bool action_is_recorded(int signal);

// Copies, in the application's terms. With `reset`, the record becomes the default action
// (SA_RESETHAND) in the same step. REQUIRES: action_is_recorded(signal).
struct sigaction application_action(int signal, bool reset_if_one_shot);
void set_application_action(int signal, const struct sigaction& action);

// Gives the kernel the default (or ignore) action, for good: the process is about to die of the
// signal, with its own exit status, core and address. Async-signal-safe.
void restore_kernel_action(int signal, bool ignore);

// After restore_kernel_action(), when death (or exec) did not come.
void reinstall_fault_handler();

// In a fork's child.
void actions_after_fork();

}  // namespace sluice::preload
