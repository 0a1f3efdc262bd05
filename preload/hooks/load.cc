// dlopen and dlmopen. A library loaded with RTLD_DEEPBIND, or into a link-map namespace of its own,
// calls libc without passing any hook: its writes would fail on closed cells, and its sigaction()
// would replace the SIGSEGV handler. So checkpoints end before the first such library is loaded,
// and mappings are observed from then on.
//
// The hooks are trampolines: libc identifies the caller by its return address ($ORIGIN, RUNPATH,
// namespace), so the real function must be entered with the caller's.
#include <cstdint>

#include "preload/base/log.h"
#include "preload/base/real.h"
#include "preload/cells/arm.h"
#include "preload/files/started.h"
#include "preload/session/events.h"
#include "preload/startup/startup.h"

namespace {

void hooks_bypassed() {
  if (sluice::preload::checkpoints_end()) {
    sluice::preload::say(sluice::preload::LogLevel::kInfo,
                         "a library with RTLD_DEEPBIND: mappings are observed from now on");
  }
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"), used)) void* sluice_before_dlopen(const char* path, int mode) {
  sluice::preload::library_is_loaded(path);
  sluice::preload::start_loads(path);
  if ((mode & RTLD_DEEPBIND) != 0) hooks_bypassed();
  return reinterpret_cast<void*>(REAL(dlopen));
}

__attribute__((visibility("hidden"), used)) void* sluice_before_dlmopen(Lmid_t space, const char*,
                                                                        int mode) {
  if (space != LM_ID_BASE || (mode & RTLD_DEEPBIND) != 0) hooks_bypassed();
  return reinterpret_cast<void*>(REAL(dlmopen));
}

}  // extern "C"

// Saves the three argument registers, calls sluice_before_NAME(), restores, and jumps to the real
// function.
#define SLUICE_TRAMPOLINE(name)            \
  asm(".text\n"                            \
      ".globl " #name                      \
      "\n"                                 \
      ".type " #name ", @function\n" #name \
      ":\n"                                \
      "  push %rdi\n"                      \
      "  push %rsi\n"                      \
      "  push %rdx\n"                      \
      "  call sluice_before_" #name        \
      "\n"                                 \
      "  pop %rdx\n"                       \
      "  pop %rsi\n"                       \
      "  pop %rdi\n"                       \
      "  jmp *%rax\n"                      \
      ".size " #name ", .-" #name "\n")

SLUICE_TRAMPOLINE(dlopen);
SLUICE_TRAMPOLINE(dlmopen);
