// The SIGSEGV handler. fault_inside.cc decides whether a fault is a checkpoint and opens its
// cell; fault_forward.cc hands every other fault to the application.
#pragma once

#include <ucontext.h>

#include <csignal>
#include <cstdint>

namespace sluice::preload {

// The kernel's SIGSEGV action while checkpoints exist. Async-signal-safe.
void fault_handler(int signal, siginfo_t* info, void* context);

// The kernel's action for SIGSTKFLT, as which a blocked SIGSEGV waits (signals/mask.h).
// Async-signal-safe.
void shadow_handler(int signal, siginfo_t* info, void* context);

// Gives a fault that is not ours to the application's action as the kernel would have: called,
// ignored, or by restoring the default and letting the instruction fault again. REQUIRES: called
// from fault_handler.
void forward_fault(siginfo_t* info, ucontext_t* context);

// Called before a fault ends the process; nullptr: nothing is.
using CrashHook = void (*)();
extern CrashHook g_before_crash;

// Builds a signal frame on the interrupted stack, as the kernel does, so that returning from
// our handler enters the action's there. For an action without SA_ONSTACK when we run on the
// alternate stack. `mask` is what is blocked while it runs. False if the frame is of an unknown
// shape; the caller then calls the handler where it is.
bool redeliver_on_interrupted_stack(const struct sigaction& action, int signal, siginfo_t* info,
                                    ucontext_t* context, unsigned long mask);

// A handler that ran in such a frame is about to return by it.
extern "C" __attribute__((visibility("hidden"))) void sluice_frame_returns(ucontext_t* context);

}  // namespace sluice::preload
