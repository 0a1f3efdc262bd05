// The application's SIGSEGV action, while the kernel's action is our handler.
//
// From install_fault_handler() on, sigaction() and its relatives read and write a record for
// SIGSEGV and its shadow (mask.h), never the kernel's actions. The record's lock is held with all
// signals blocked and only while the record is copied, so the handler may take it: the thread that
// the handler interrupted never holds it.
#pragma once

#include <csignal>
#include <cstdint>

namespace sluice::preload {

enum class Taken : uint8_t {
  kOurs,
  kLost,     // the kernel's action is not our handler: our sigaction() was lost or overridden
  kBlocked,  // another thread blocks SIGSEGV in the kernel: a checkpoint there ends the process
};

// Whether our handler is the kernel's SIGSEGV action, or could be. Changes nothing. Not from a
// handler.
Taken can_take_segv();

// Takes SIGSEGV unless that is done: installs our handler in the kernel, moves the application's
// actions into the record, and translates the masks of other signals' actions to the kernel's terms
// (mask.h). The calling thread's mask is translated when it leaves its blocked section or next
// calls a hook. Not from our handler.
Taken install_fault_handler();

// True once SIGSEGV was taken; does not look at the kernel's action. Async-signal-safe.
bool fault_handler_installed();

// Whether the record holds this signal's action. Async-signal-safe.
bool action_is_recorded(int signal);

// Copies of the record, in the application's terms. With `reset_if_one_shot`, the record of a
// SA_RESETHAND action becomes the default action in the same step.
// REQUIRES: action_is_recorded(signal).
struct sigaction application_action(int signal, bool reset_if_one_shot);
void set_application_action(int signal, const struct sigaction& action);

// Sets the kernel's action to the default (or to ignore) for good: the process is about to die of
// the signal, with the kernel's exit status, core file and fault address. Async-signal-safe.
void restore_kernel_action(int signal, bool ignore);

// After restore_kernel_action(), if the process did not die (or exec failed).
void reinstall_fault_handler();

// In a fork's child.
void actions_after_fork();

}  // namespace sluice::preload
