#include "optimizer/daemon/invisible.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace sluice::optimizer {
namespace {

void raise_to_hard(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
}

// Requests short time slices: under EEVDF (Linux 6.12) a small slice means an early deadline, so
// that the optimizer need not wait for the whole slice of a busy reader on the same core. Takes no
// processor time from others, needs no privilege, and older kernels ignore it.
void take_short_turns() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  attributes.size = sizeof attributes;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.runtime = 100'000;  // ns, the kernel's minimum
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

void become_invisible(bool detach) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
  }
  // A closed connection must be an error of send() rather than end the process, and so must not the
  // hang-up of a job's terminal.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a trace at the file size limit is an error of write()
  umask(077);
  if (chdir("/") != 0) return;
  raise_to_hard(RLIMIT_NOFILE);
  raise_to_hard(RLIMIT_CPU);
  raise_to_hard(RLIMIT_FSIZE);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  take_short_turns();
  if (!detach) return;
  setsid();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (int fd = 0; fd <= 2; ++fd) {
    if (fd != null) dup2(null, fd);
  }
  if (null > 2) close(null);
}

}  // namespace sluice::optimizer
