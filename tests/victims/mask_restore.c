// SIGSEGV handlers that save and restore the signal mask, as unwinders and collectors do, entered
// before and after the library may have taken the signal; and what the mask is afterwards, however
// the handler was left. Each scenario ends by a fault or a signal that must end the process.
#include <ucontext.h>

#include "tests/victims/victim.h"

enum leave { kReturn, kJump, kJumpBare, kContext, kNested, kLeaves };
enum map { kNever, kAfter, kBefore, kInside, kMaps };
enum flags { kPlain, kNoDefer, kOnStack, kFlags };
static const char* const leave_names[] = {"return", "siglongjmp", "longjmp", "setcontext",
                                          "nested"};
static const char* const map_names[] = {"never", "after", "before", "inside"};
static const int flag_bits[] = {0, SA_NODEFER, SA_ONSTACK};

static struct {
  enum leave leave;
  enum map map;
  enum flags flags;
} now;
static const char* path;
static const unsigned char* data;
static unsigned char* broken;
static char alternate[65536];
static sigjmp_buf back;
static ucontext_t context;
static volatile int depth, handled;
static volatile bool returned;

static void say_mask(const char* what) {
  sigset_t mask;
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
  printf("  %s:", what);
  for (int i = 1; i < 65; ++i) {
    if (sigismember(&mask, i) == 1) printf(" %d", i);
  }
  printf("\n");
  fflush(stdout);
}

static void save_and_restore(void) {
  sigset_t all, old;
  sigfillset(&all);
  CHECK(sigprocmask(SIG_BLOCK, &all, &old) == 0);
  CHECK(sigprocmask(SIG_SETMASK, &old, NULL) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, &all, &old) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
}

static void handler(int number, siginfo_t* info, void* raw) {
  (void)info;
  (void)raw;
  ++handled;
  save_and_restore();
  if (handled == 1) say_mask("in the handler");
  if (now.map == kInside && data == NULL) {
    data = map_data(path);
    CHECK(is_data(data, 0, DATA_SIZE / 4));
    save_and_restore();
  }
  if (now.leave == kNested && depth == 0) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    CHECK(sigprocmask(SIG_UNBLOCK, &one, NULL) == 0);
    ++depth;
    broken[PAGE] = 1;
    --depth;
    save_and_restore();
  }
  if (now.leave == kJump) siglongjmp(back, 1);
  if (now.leave == kJumpBare) longjmp(back, 1);
  if (now.leave == kContext) {
    setcontext(&context);
    CHECK(false);
  }
  CHECK(mprotect(broken + (depth ? PAGE : 0), PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void fault(void) {
  CHECK(mprotect(broken, 2 * PAGE, PROT_NONE) == 0);
  if (now.leave == kJump || now.leave == kJumpBare) {
    if (sigsetjmp(back, now.leave == kJump) == 0) broken[0] = 1;
    if (now.leave == kJumpBare) {
      sigset_t none;
      sigemptyset(&none);
      CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
    }
  } else if (now.leave == kContext) {
    returned = false;
    CHECK(getcontext(&context) == 0);
    if (!returned) {
      returned = true;
      broken[0] = 1;
    }
  } else {
    broken[0] = 1;
  }
}

static void scenario(void* how) {
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  CHECK(sigaltstack(&stack, NULL) == 0);
  struct sigaction action = {.sa_sigaction = handler,
                             .sa_flags = SA_SIGINFO | flag_bits[now.flags]};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  broken = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(broken != MAP_FAILED);
  if (now.map == kBefore) data = map_data(path);
  for (volatile int i = 0; i < 10; ++i) fault();
  say_mask("ten times");
  if (now.map == kAfter) data = map_data(path);
  if (data != NULL) CHECK(is_data(data, 0, DATA_SIZE / 2));
  for (volatile int i = 0; i < 10; ++i) fault();
  if (data != NULL) CHECK(is_data(data, 0, DATA_SIZE));
  say_mask("twenty times");
  printf("  handled %d\n", handled);
  fflush(stdout);
  CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
  if (how == NULL) raise(SIGSEGV);
  CHECK(mprotect(broken, PAGE, PROT_NONE) == 0);
  broken[0] = 1;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  path = argv[1];
  for (int map = 0; map < kMaps; ++map) {
    for (int leave = 0; leave < kLeaves; ++leave) {
      for (int flags = 0; flags < kFlags; ++flags) {
        now.leave = (enum leave)leave;
        now.map = (enum map)map;
        now.flags = (enum flags)flags;
        char what[96];
        snprintf(what, sizeof what, "mapped %s, left by %s, flags %x", map_names[map],
                 leave_names[leave], (unsigned)flag_bits[flags]);
        puts(what);
        in_child(what, scenario, (leave + map + flags) % 2 ? what : NULL);
      }
    }
  }
  return 0;
}
