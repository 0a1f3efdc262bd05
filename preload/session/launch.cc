// Two clones like vfork(), so that the page tables of a job of many gigabytes are never copied. The
// children run in the job's memory: they make only system calls and use only their own stacks.
#include "preload/session/launch.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>

#include "preload/base/sys.h"

namespace sluice::preload {
namespace {

constexpr size_t kStackBytes = 64 << 10;

struct Start {
  const char* program;
  const char* const* argv;
  char* inner_stack_top;
  int error;
};

// Nothing is closed here: the copy of a descriptor may be of a file system that answers nothing.
// FUSE asks it at each close, NFS where the file is open for writing. The kernel closes them once
// the program has its own memory, and no process waits for this one any more.
void close_all_on_exec() {
  if (!sys::failed(sys::call(SYS_close_range, 0, ~0U, CLOSE_RANGE_CLOEXEC))) return;
  for (int fd = 0; fd < 65536; ++fd) sys::call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
}

int run_program(void* raw) {
  auto* start = static_cast<Start*>(raw);
  static const char* const kEnvironment[] = {"PATH=/usr/bin:/bin", nullptr};
  close_all_on_exec();
  const long result = sys::call(SYS_execve, sys::word(start->program), sys::word(start->argv),
                                sys::word(kEnvironment));
  start->error = static_cast<int>(-result);
  sys::call(SYS_exit, 127);
  return 0;
}

void default_signals() {
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    sys::SignalSet mask;
  } plain = {};
  for (int signal = 1; signal <= 64; ++signal) {
    sys::call(SYS_rt_sigaction, signal, sys::word(&plain), 0, sizeof plain.mask);
  }
}

int leave_the_job(void* raw) {
  auto* start = static_cast<Start*>(raw);
  sys::call(SYS_setsid);
  sys::call(SYS_chdir, sys::word("/"));
  default_signals();
  sys::set_mask(0);
  const int child = clone(run_program, start->inner_stack_top, CLONE_VM | CLONE_VFORK, raw);
  if (child < 0 && start->error == 0) start->error = EAGAIN;
  sys::call(SYS_exit, 0);
  return 0;
}

}  // namespace

int launch_daemon(const char* program, const char* const* argv) {
  const long stacks = sys::call(SYS_mmap, 0, 2 * kStackBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (sys::failed(stacks)) return ENOMEM;
  char* memory = reinterpret_cast<char*>(stacks);
  Start start = {program, argv, memory + kStackBytes, 0};
  const int saved_errno = errno;
  // No exit signal: no SIGCHLD, and wait() without __WCLONE does not see it.
  // It shares the job's table of descriptors, so that its end, which is waited for, closes nothing.
  const int child =
      clone(leave_the_job, memory + 2 * kStackBytes, CLONE_VM | CLONE_VFORK | CLONE_FILES, &start);
  if (child > 0) {
    sys::call(SYS_wait4, child, 0, __WCLONE, 0);
  } else {
    start.error = errno;
  }
  errno = saved_errno;
  sys::call(SYS_munmap, stacks, 2 * kStackBytes);
  return start.error;
}

}  // namespace sluice::preload
