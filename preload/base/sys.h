// System calls without libc: no errno, no cancellation point, no hook, usable in a signal
// handler, before main, after exit began, and in a vfork child. Results are the kernel's:
// negative values above -4096 are -errno.
#pragma once

#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace sluice::preload::sys {

#if defined(__x86_64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#else
#error "Sluice's library is written for x86-64"
#endif

inline bool failed(long result) { return result < 0 && result > -4096; }

template <typename T>
inline long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

inline int pid() { return static_cast<int>(call(SYS_getpid)); }
inline int tid() { return static_cast<int>(call(SYS_gettid)); }
inline long protect(uintptr_t address, size_t length, int prot) {
  return call(SYS_mprotect, static_cast<long>(address), static_cast<long>(length), prot);
}
inline long advise(uintptr_t address, size_t length, int advice) {
  return call(SYS_madvise, static_cast<long>(address), static_cast<long>(length), advice);
}
inline long close(int fd) { return call(SYS_close, fd); }

// From linux/mman.h of 6.13 and later; Debian 12's headers are older.
inline constexpr int kGuardInstall = 102;
inline constexpr int kGuardRemove = 103;

// The kernel's signal set is 64 bits.
using SignalSet = uint64_t;
inline constexpr SignalSet signal_bit(int signal) { return SignalSet{1} << (signal - 1); }
// glibc's own, which it removes from every set that an application passes: SIGCANCEL, SIGSETXID.
inline constexpr SignalSet kInternalSignals = signal_bit(32) | signal_bit(33);
// The signals that this library blocks in short sections. is_own_block() recognises such a mask:
// libc blocks both of its internal signals or neither. SIGSETXID's handler makes one system call.
inline constexpr SignalSet kAllSignals = ~signal_bit(33);
inline constexpr bool is_own_block(SignalSet mask) {
  return (mask & kInternalSignals) == signal_bit(32);
}

inline SignalSet set_mask(SignalSet mask) {
  SignalSet old = 0;
  call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, word(&mask), word(&old), sizeof(mask));
  return old;
}

// Ends a section begun by set_mask(kAllSignals): `mask` is what that returned. If SIGSEGV was taken
// meanwhile (handler/mask.h), it is not blocked.
void restore_mask(SignalSet mask);

// Blocks every signal for a scope: a handler that ran inside a cell's transition of its own thread
// and touched that cell would wait forever.
class SignalsBlocked {
 public:
  SignalsBlocked() : old_(set_mask(kAllSignals)) {}
  ~SignalsBlocked() { restore_mask(old_); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  SignalSet old_;
};

uint64_t now_ns();         // CLOCK_MONOTONIC, through the vDSO; async-signal-safe
uint64_t thread_cpu_ns();  // CPU time of the calling thread; async-signal-safe

}  // namespace sluice::preload::sys
