// Children that libc makes without fork(): by vfork and clone, and inside of other calls.
// Descriptors that they inherit share the offset with the parent, so they are switched to the
// originals first.
//
// vfork and clone are trampolines: their child returns to the caller on the parent's stack, which
// must have no frame of this library on it.
#include <sched.h>

#include "preload/base/process.h"
#include "preload/base/real.h"
#include "preload/stage/original.h"

extern "C" {

__attribute__((visibility("hidden"), used)) void* sluice_before_vfork() {
  sluice::preload::use_all_originals();
  sluice::preload::before_vfork(false);
  return reinterpret_cast<void*>(REAL(vfork));
}

__attribute__((visibility("hidden"), used)) void* sluice_before_clone(int flags) {
  sluice::preload::resolve_hooks();  // its child may be a thread
  sluice::preload::use_all_originals();
  // t_state cannot mark a child that runs concurrently with its parent or has its own t_state.
  const bool as_vfork =
      (flags & CLONE_VM) == 0 || (flags & (CLONE_VFORK | CLONE_SETTLS)) == CLONE_VFORK;
  sluice::preload::before_vfork(!as_vfork);
  return reinterpret_cast<void*>(REAL(clone));
}

}  // extern "C"

// Aligns the stack, calls sluice_before_vfork(), and jumps to the real function.
asm(".text\n"
    ".globl vfork\n"
    ".type vfork, @function\n"
    "vfork:\n"
    "  sub $8, %rsp\n"
    "  call sluice_before_vfork\n"
    "  add $8, %rsp\n"
    "  jmp *%rax\n"
    ".size vfork, .-vfork\n");

// The same with the argument registers saved; the seventh argument stays on the stack.
asm(".text\n"
    ".globl clone\n"
    ".type clone, @function\n"
    "clone:\n"
    "  push %rdi\n"
    "  push %rsi\n"
    "  push %rdx\n"
    "  push %rcx\n"
    "  push %r8\n"
    "  push %r9\n"
    "  sub $8, %rsp\n"
    "  mov %edx, %edi\n"
    "  call sluice_before_clone\n"
    "  add $8, %rsp\n"
    "  pop %r9\n"
    "  pop %r8\n"
    "  pop %rcx\n"
    "  pop %rdx\n"
    "  pop %rsi\n"
    "  pop %rdi\n"
    "  jmp *%rax\n"
    ".size clone, .-clone\n");

using sluice::preload::use_originals_for_exec;

SLUICE_EXPORT int system(const char* command) {
  use_originals_for_exec();
  return REAL(system)(command);
}
SLUICE_EXPORT FILE* popen(const char* command, const char* mode) {
  use_originals_for_exec();
  return REAL(popen)(command, mode);
}
