#include "preload/base/own_stack.h"

#include <sys/mman.h>

#include <csignal>

#include "preload/base/sys.h"

// Unwinders (a cancellation, a debugger) find the caller by %rbp.
extern "C" void sluice_call_on_stack(void (*work)(void*), uintptr_t top, void* argument);
asm(".text\n"
    ".type sluice_call_on_stack, @function\n"
    ".hidden sluice_call_on_stack\n"
    "sluice_call_on_stack:\n"
    "  .cfi_startproc\n"
    "  push %rbp\n"
    "  .cfi_def_cfa_offset 16\n"
    "  .cfi_offset %rbp, -16\n"
    "  mov %rsp, %rbp\n"
    "  .cfi_def_cfa_register %rbp\n"
    "  mov %rsi, %rsp\n"
    "  mov %rdi, %rax\n"
    "  mov %rdx, %rdi\n"
    "  call *%rax\n"
    "  mov %rbp, %rsp\n"
    "  pop %rbp\n"
    "  .cfi_def_cfa %rsp, 8\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size sluice_call_on_stack, .-sluice_call_on_stack\n");

namespace sluice::preload {
namespace {

constexpr long kBytes = 256 << 10;

}  // namespace

bool on_signal_stack() {
  stack_t now = {};
  return sys::call(SYS_sigaltstack, 0, sys::word(&now)) != 0 || (now.ss_flags & SS_ONSTACK) != 0;
}

void run_on_own_stack(void (*work)(void*), void* argument) {
  const long memory = sys::call(SYS_mmap, 0, kBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (sys::failed(memory)) {
    work(argument);
    return;
  }
  sluice_call_on_stack(work, static_cast<uintptr_t>(memory + kBytes), argument);
  sys::call(SYS_munmap, memory, kBytes);
}

}  // namespace sluice::preload
