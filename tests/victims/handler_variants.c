// Every other way to set an action, and what each returns and leaves behind.
#include "tests/victims/victim.h"

static int hits;
static void first(int number) {
  (void)number;
  ++hits;
}
static void second(int number) {
  (void)number;
  hits += 100;
}

static const char* name_of(void (*handler)(int)) {
  if (handler == SIG_DFL) return "default";
  if (handler == SIG_IGN) return "ignore";
  if (handler == SIG_HOLD) return "hold";
  if (handler == SIG_ERR) return "error";
  return handler == first ? "first" : handler == second ? "second" : "unknown";
}

static void state(const char* what, int number) {
  struct sigaction now;
  CHECK(sigaction(number, NULL, &now) == 0);
  sigset_t mask;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0);
  printf("%s: %s flags %x blocked %d mask", what, name_of(now.sa_handler),
         (unsigned)now.sa_flags & ~0x04000000U, sigismember(&mask, number));
  for (int i = 1; i < 65; ++i) {
    if (sigismember(&now.sa_mask, i) == 1) printf(" %d", i);
  }
  printf("; hits %d\n", hits);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void tour(int number) {
  state("at first", number);
  printf("signal: was %s\n", name_of(signal(number, first)));
  state("signal", number);
  kill(getpid(), number);
  state("sent", number);
  printf("sysv_signal: was %s\n", name_of(sysv_signal(number, second)));
  state("sysv_signal", number);
  raise(number);
  state("raised", number);
  printf("sigset: was %s\n", name_of(sigset(number, first)));
  state("sigset", number);
  raise(number);
  printf("sighold %d\n", sighold(number));
  raise(number);
  state("held", number);
  sigset_t pending;
  CHECK(sigpending(&pending) == 0);
  printf("pending %d\n", sigismember(&pending, number));
  printf("sigset hold: was %s\n", name_of(sigset(number, SIG_HOLD)));
  printf("sigrelse %d\n", sigrelse(number));
  state("released", number);
  printf("sigignore %d\n", sigignore(number));
  raise(number);
  state("ignored", number);
  printf("siginterrupt %d\n", siginterrupt(number, 1));
  printf("signal: was %s\n", name_of(signal(number, second)));
  state("interrupting", number);
  struct sigaction action = {.sa_handler = first, .sa_flags = SA_RESETHAND | SA_NODEFER}, old;
  sigfillset(&action.sa_mask);
  CHECK(sigaction(number, &action, &old) == 0);
  printf("sigaction: was %s\n", name_of(old.sa_handler));
  state("full mask", number);
  raise(number);
  state("reset", number);
  printf("bad: %d", sigaction(65, &action, NULL));
  printf(" %d\n", errno);
  printf("null handler: %s\n", name_of(signal(number, NULL)));
  // Waiting for it as a message instead.
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  CHECK(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0);
  kill(getpid(), number);
  siginfo_t info;
  printf("sigwaitinfo %d", sigwaitinfo(&one, &info));
  printf(" code %d\n", info.si_code);
  kill(getpid(), number);
  int got = 0;
  printf("sigwait %d", sigwait(&one, &got));
  printf(" %d\n", got);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
  state("at last", number);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  tour(SIGSEGV);
  signal(SIGSEGV, SIG_DFL);
  hits = 0;
  const unsigned char* at = map_data(argv[1]);
  CHECK(is_data(at, 0, DATA_SIZE / 3));
  tour(SIGSEGV);
  tour(SIGBUS);
  tour(SIGUSR1);
  CHECK(is_data(at, 0, DATA_SIZE));
  return 0;
}
