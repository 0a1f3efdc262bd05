// The application's own SIGSEGV and SIGBUS actions with every combination of flags, installed
// before or after the mapping: handlers ... before|after. In each combination a child reads the
// data, faults for real, and its handler says everything that the kernel passed to it: on which
// stack it runs, the mask, si_code, si_addr relative to what was touched. Then it repairs the page
// and returns, and the faulting access must go through.
#include <ucontext.h>

#include "tests/victims/victim.h"

static const char* path;
static bool after;
static unsigned char* broken;
static char alternate[65536];
static volatile int seen;
static struct sigaction wanted;
static int wanted_signal;

static void say_mask(const char* what, const sigset_t* mask) {
  printf("  %s:", what);
  for (int i = 1; i < 32; ++i) {
    if (sigismember(mask, i) == 1) printf(" %d", i);
  }
  printf("\n");
}

static void common(int number) {
  ++seen;
  char here;
  bool on_alternate = &here >= alternate && &here < alternate + sizeof alternate;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  printf("  handler of %d, %s stack\n", number, on_alternate ? "alternate" : "usual");
  say_mask("blocked", &mask);
  struct sigaction now;
  CHECK(sigaction(number, NULL, &now) == 0);
  printf("  action: %s flags %x\n", now.sa_handler == SIG_DFL ? "default" : "set",
         (unsigned)now.sa_flags & ~0x04000000U);
  stack_t stack;
  CHECK(sigaltstack(NULL, &stack) == 0);
  printf("  altstack flags %d\n", stack.ss_flags);
  if (wanted_signal == SIGSEGV) {
    CHECK(mprotect(broken, PAGE, PROT_READ | PROT_WRITE) == 0);
  } else {
    CHECK(mmap(broken, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
               0) == broken);
  }
}

static void plain_handler(int number) { common(number); }

static void info_handler(int number, siginfo_t* info, void* context) {
  ucontext_t* user = context;
  printf("  code %d address %+ld errno %d\n", info->si_code,
         (long)((unsigned char*)info->si_addr - broken), info->si_errno);
  say_mask("interrupted mask", &user->uc_sigmask);
  printf("  err %llx trap %lld cr2 %+ld\n", (unsigned long long)user->uc_mcontext.gregs[REG_ERR],
         (long long)user->uc_mcontext.gregs[REG_TRAPNO],
         (long)((unsigned char*)user->uc_mcontext.gregs[REG_CR2] - broken));
  common(number);
}

static void install(void) { CHECK(sigaction(wanted_signal, &wanted, NULL) == 0); }

static void scenario(void* argument) {
  (void)argument;
  if (!after) install();
  const unsigned char* at = map_data(path);
  if (after) install();
  // A page that faults for a reason that is not Sluice's.
  if (wanted_signal == SIGSEGV) {
    broken = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  } else {
    int fd = open("empty", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    broken = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  CHECK(broken != MAP_FAILED);
  CHECK(is_data(at, 0, DATA_SIZE / 4));
  CHECK(seen == 0);
  ((volatile unsigned char*)broken)[7] = 42;
  CHECK(broken[7] == 42 && seen == 1);
  CHECK(is_data(at + DATA_SIZE / 4, DATA_SIZE / 4, DATA_SIZE / 4));
  // Once more: SA_RESETHAND ends the child here.
  if (wanted_signal == SIGSEGV) CHECK(mprotect(broken, PAGE, PROT_NONE) == 0);
  struct sigaction now;
  CHECK(sigaction(wanted_signal, NULL, &now) == 0);
  printf("  now %s\n", now.sa_handler == SIG_DFL ? "default" : "set");
  fflush(stdout);
  if (wanted_signal == SIGSEGV) {
    ((volatile unsigned char*)broken)[8] = 43;
    CHECK(broken[8] == 43 && seen == 2);
  }
  CHECK(is_data(at + DATA_SIZE / 2, DATA_SIZE / 2, DATA_SIZE / 4));
}

int main(int argc, char** argv) {
  CHECK(argc > 4);
  path = argv[1];
  after = !strcmp(argv[4], "after");
  for (int number = 0; number < 2; ++number) {
    wanted_signal = number ? SIGBUS : SIGSEGV;
    for (int bits = 0; bits < 64; ++bits) {
      memset(&wanted, 0, sizeof wanted);
      wanted.sa_flags = (bits & 1 ? SA_SIGINFO : 0) | (bits & 2 ? SA_NODEFER : 0) |
                        (bits & 4 ? (int)SA_RESETHAND : 0) | (bits & 8 ? SA_ONSTACK : 0) |
                        (bits & 16 ? SA_RESTART : 0);
      if (bits & 1) {
        wanted.sa_sigaction = info_handler;
      } else {
        wanted.sa_handler = plain_handler;
      }
      sigemptyset(&wanted.sa_mask);
      if (bits & 16) sigaddset(&wanted.sa_mask, SIGUSR1);
      // The alternate stack is there or not, whether the handler asks for it or not.
      stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
      if (!(bits & 32)) stack.ss_flags = SS_DISABLE;
      CHECK(sigaltstack(&stack, NULL) == 0);
      char what[64];
      snprintf(what, sizeof what, "signal %d flags %x%s", wanted_signal, (unsigned)wanted.sa_flags,
               bits & 32 ? " altstack" : "");
      puts(what);
      in_child(what, scenario, NULL);
    }
  }
  return 0;
}
