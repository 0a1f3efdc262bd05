// The SIGSEGV handler. fault_inside.cc decides whether a fault is a checkpoint and opens its
// cell; fault_forward.cc delivers every other fault to the application.
#pragma once

#include <ucontext.h>

#include <csignal>
#include <cstdint>

namespace sluice::preload {

// The kernel's SIGSEGV action while checkpoints exist. Async-signal-safe.
void fault_handler(int signal, siginfo_t* info, void* context);

// The kernel's action for SIGSTKFLT: a blocked SIGSEGV is pending under that number
// (handler/mask.h). Async-signal-safe.
void shadow_handler(int signal, siginfo_t* info, void* context);

// Delivers a fault that Sluice did not cause to the application's action, as the kernel would:
// calls the handler, ignores the signal, or restores the default action and lets the instruction
// fault again. REQUIRES: called from fault_handler.
void forward_fault(siginfo_t* info, ucontext_t* context);

// Called before a fault ends the process, unless nullptr.
using CrashHook = void (*)();
extern CrashHook g_before_crash;

// Builds a signal frame on the interrupted stack, as the kernel does, so that the return from our
// handler enters the action's handler on that stack. For an action without SA_ONSTACK when our
// handler runs on the alternate stack. `mask` is blocked while the action's handler runs. False if
// the frame has an unknown layout; the caller then calls that handler on the current stack.
bool redeliver_on_interrupted_stack(const struct sigaction& action, int signal, siginfo_t* info,
                                    ucontext_t* context, unsigned long mask);

// Called when a handler that ran in such a frame is about to return through it.
extern "C" __attribute__((visibility("hidden"))) void sluice_frame_returns(ucontext_t* context);

}  // namespace sluice::preload
