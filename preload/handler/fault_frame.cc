// READ BEFORE CHANGING: runs inside the fault handler, and writes the interrupted stack.
//
// The frame is the kernel's own rt_sigframe (arch/x86/kernel/signal_64.c): return address (the
// restorer), ucontext, siginfo, and above it the extended floating-point state that
// uc_mcontext.fpregs points to. The frame of our handler is copied from the alternate stack to the
// interrupted one; the registers of the original context are changed so that the return from our
// handler enters the application's handler, and the return from that runs rt_sigreturn on the copy.
#include <cstddef>
#include <cstring>

#include "preload/handler/fault.h"

// Last.
#include "preload/handler/poison.h"

extern "C" void sluice_restore_rt();
asm(".text\n"
    ".type sluice_restore_rt, @function\n"
    ".hidden sluice_restore_rt\n"
    "sluice_restore_rt:\n"
    "  mov %rsp, %rdi\n"
    "  call sluice_frame_returns\n"
    "  mov $15, %eax\n"
    "  syscall\n"
    ".size sluice_restore_rt, .-sluice_restore_rt\n");

namespace sluice::preload {
namespace {

constexpr uintptr_t kRedZone = 128;

// The kernel saves an 8-byte signal mask at the end, not glibc's 128 bytes.
constexpr size_t kContextBytes = offsetof(ucontext_t, uc_sigmask) + 8;

struct Frame {
  void* restorer;
  unsigned char context[kContextBytes];
  siginfo_t info;
};

size_t float_state_bytes(const void* state) {
  _fpx_sw_bytes software;
  memcpy(&software, static_cast<const char*>(state) + 464, sizeof software);
  return software.magic1 == FP_XSTATE_MAGIC1 ? software.extended_size : 512;
}

}  // namespace

bool redeliver_on_interrupted_stack(const struct sigaction& action, int signal, siginfo_t* info,
                                    ucontext_t* context, unsigned long mask) {
  greg_t* registers = context->uc_mcontext.gregs;
  auto top = static_cast<uintptr_t>(registers[REG_RSP]) - kRedZone;
  void* copied_state = nullptr;
  if (context->uc_mcontext.fpregs != nullptr) {
    const size_t bytes = float_state_bytes(context->uc_mcontext.fpregs);
    if (bytes > 65536) return false;
    top = (top - bytes) & ~uintptr_t{63};
    copied_state = reinterpret_cast<void*>(top);
    memcpy(copied_state, context->uc_mcontext.fpregs, bytes);
  }
  // At a function's entry the stack is 8 below a multiple of 16.
  top = ((top - sizeof(Frame)) & ~uintptr_t{15}) - 8;
  auto* frame = reinterpret_cast<Frame*>(top);
  frame->restorer = reinterpret_cast<void*>(&sluice_restore_rt);
  memcpy(frame->context, context, kContextBytes);
  memcpy(&frame->info, info, sizeof *info);
  const size_t fpregs_at = offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, fpregs);
  memcpy(frame->context + fpregs_at, &copied_state, sizeof copied_state);

  registers[REG_RDI] = signal;
  registers[REG_RSI] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(&frame->info));
  registers[REG_RDX] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(frame->context));
  registers[REG_RAX] = 0;
  registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(action.sa_sigaction));
  registers[REG_RSP] = static_cast<greg_t>(top);
  registers[REG_EFL] &= ~greg_t{0x500};  // direction and trap flags, as the kernel clears them
  memcpy(&context->uc_sigmask, &mask, sizeof mask);
  return true;
}

}  // namespace sluice::preload
