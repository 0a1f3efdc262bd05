// Steps about signals: actions, masks, alternate stacks, faults on purpose.
#include <sys/mman.h>

#include "tests/differential/executor.h"

enum handler_kind { kCount, kMask, kJump, kExit, kNested, kReads };

__thread sigjmp_buf g_jump;
__thread volatile bool g_jump_armed;

static _Atomic int g_kinds[65];
static __thread unsigned char* guard;  // a page that `fault` touches
static __thread volatile int handled, code, mask_within;
static __thread volatile bool on_stack;
static __thread char* alternate;
static __thread size_t alternate_size;

static const int kKnown[] = {SIGSEGV, SIGBUS, SIGUSR1, SIGUSR2, SIGTERM};

static int bits(const sigset_t* set) {
  int found = 0;
  for (size_t i = 0; i < sizeof kKnown / sizeof *kKnown; ++i) {
    if (sigismember(set, kKnown[i]) == 1) found |= 1 << i;
  }
  return found;
}
static sigset_t set_of(long wanted) {
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof kKnown / sizeof *kKnown; ++i) {
    if ((wanted >> i & 1) != 0) sigaddset(&set, kKnown[i]);
  }
  return set;
}

static void handler(int signal, siginfo_t* info, void* context) {
  (void)context;
  const int saved = errno;
  char here;
  ++handled;
  code = info->si_code;
  on_stack = alternate != NULL && &here >= alternate && &here < alternate + alternate_size;
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  mask_within = bits(&now);
  const int kind = atomic_load(&g_kinds[signal]);
  if (kind == kMask || kind == kNested) {  // as libunwind and garbage collectors do
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    if (kind == kNested) raise(SIGUSR2);
    sigprocmask(SIG_SETMASK, &before, NULL);
  }
  if (kind == kReads) {  // a mapping of the program's, from within
    const struct shared_map* map = &g_shared->processes[g_process].maps[0];
    if (map->at != NULL && signal != SIGBUS) mask_within |= map->at[map->size / 2] << 8;
  }
  if (kind == kExit) {
    leave_for_good();
    _exit(33);
  }
  if (kind == kJump && g_jump_armed) siglongjmp(g_jump, 1);
  if (signal == SIGSEGV && guard != NULL) mprotect(guard, 4096, PROT_READ | PROT_WRITE);
  errno = saved;
}

static void bus_handler(int signal, siginfo_t* info, void* context) {
  (void)info;
  (void)context;
  if (g_jump_armed) siglongjmp(g_jump, 1);
  struct sigaction none = {.sa_handler = SIG_DFL};
  sigaction(signal, &none, NULL);
}

// Bytes of a mapping behind the end of a file that was truncated are no end of the program.
void prepare_signals(void) {
  struct sigaction action = {.sa_sigaction = bus_handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGBUS, &action, NULL);
}

static void act(const struct step* step) {
  static const struct {
    const char* name;
    int kind;
  } kKinds[] = {{"count", kCount}, {"mask", kMask},     {"jump", kJump},
                {"exit", kExit},   {"nested", kNested}, {"reads", kReads}};
  const int signal = (int)number(step, 1);
  const char* letters = word(step, 3);
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, before;
  if (strchr(letters, 'o') != NULL) action.sa_flags |= SA_ONSTACK;
  if (strchr(letters, 'd') != NULL) action.sa_flags |= SA_NODEFER;
  if (strchr(letters, 'r') != NULL) action.sa_flags |= SA_RESETHAND;
  if (strchr(letters, 't') != NULL) action.sa_flags |= SA_RESTART;
  action.sa_mask = set_of(number(step, 4));
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i) {
    if (strcmp(kKinds[i].name, word(step, 2)) == 0) atomic_store(&g_kinds[signal], kKinds[i].kind);
  }
  if (strcmp(word(step, 2), "default") == 0) action = (struct sigaction){.sa_handler = SIG_DFL};
  if (strcmp(word(step, 2), "ignore") == 0) action = (struct sigaction){.sa_handler = SIG_IGN};
  if (sigaction(signal, &action, &before) != 0) {
    say_result(-1);
    return;
  }
  say("before %s flags %x mask %x",
      before.sa_handler == SIG_DFL         ? "default"
      : before.sa_handler == SIG_IGN       ? "ignored"
      : before.sa_sigaction == handler     ? "ours"
      : before.sa_sigaction == bus_handler ? "first"
                                           : "strange",
      before.sa_flags & ~0x04000000, bits(&before.sa_mask));
}

static void change_mask(const struct step* step) {
  static const char* const kHows[] = {"block", "unblock", "set"};
  static const int kValues[] = {SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK};
  sigset_t before, after;
  const sigset_t set = set_of(number(step, 2));
  for (int i = 0; i < 3; ++i) {
    if (strcmp(word(step, 1), kHows[i]) != 0) continue;
    const int result = number(step, 3) ? sigprocmask(kValues[i], &set, &before)
                                       : pthread_sigmask(kValues[i], &set, &before);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    say("%d before %x after %x", result, bits(&before), bits(&after));
  }
}

static void say_handled(const char* what) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  say("%s handled %d code %d mask within %x after %x stack %d", what, handled, code, mask_within,
      bits(&now), on_stack);
  handled = code = mask_within = 0;
}

static void raise_it(const struct step* step) {
  if (sigsetjmp(g_jump, 1) != 0) {
    g_jump_armed = false;
    say_handled("jumped");
    return;
  }
  g_jump_armed = true;
  const int result = raise((int)number(step, 1));
  g_jump_armed = false;
  say("%d", result);
  say_handled("raised");
}

// Touches a page that is protected; a handler lets it, jumps out, ends the process, or there is
// none.
static void fault(const struct step* step) {
  (void)step;
  if (guard == NULL) {
    void* page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    guard = page;
  }
  mprotect(guard, 4096, PROT_NONE);
  if (sigsetjmp(g_jump, 1) != 0) {
    g_jump_armed = false;
    say_handled("jumped");
    return;
  }
  g_jump_armed = true;
  *(volatile unsigned char*)guard = 1;
  g_jump_armed = false;
  say_handled("mended");
}

static void stack(const struct step* step) {
  stack_t wanted = {0}, before;
  const size_t size = (size_t)number(step, 1);
  if (size == 0) {
    wanted.ss_flags = SS_DISABLE;
  } else {
    alternate = malloc(size);
    alternate_size = size;
    wanted.ss_sp = alternate;
    wanted.ss_size = size;
  }
  const int result = sigaltstack(&wanted, &before);
  if (result != 0) {
    say_result(-1);
  } else {
    say("before flags %d size %zu", before.ss_flags, before.ss_size);
  }
}

static void pending(const struct step* step) {
  (void)step;
  sigset_t set;
  say_result(sigpending(&set));
  say("%x", bits(&set));
}
static void take(const struct step* step) {  // a pending one, without waiting
  const sigset_t set = set_of(number(step, 1));
  const struct timespec now = {0, 0};
  siginfo_t info = {0};
  const int got = sigtimedwait(&set, &info, &now);
  say_result(got);
}

const struct operation kSignalOperations[] = {
    {"sigaction", act},  {"sigmask", change_mask}, {"raise", raise_it}, {"fault", fault},
    {"altstack", stack}, {"sigpending", pending},  {"sigtake", take},   {NULL, NULL}};
