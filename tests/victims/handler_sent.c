// SIGSEGV and SIGBUS that a process sends: si_code, si_pid and si_value arrive; blocked ones wait;
// a handler on the alternate stack outlives a stack overflow; two handlers in turn.
#include "tests/victims/victim.h"

static sigjmp_buf back;
static int got;

static void handler(int number, siginfo_t* info, void* context) {
  (void)context;
  ++got;
  printf("%d code %d from me %d value %d\n", number, info->si_code, info->si_pid == getpid(),
         info->si_code == SI_QUEUE ? info->si_value.sival_int : 0);
}

static void overflow_handler(int number, siginfo_t* info, void* context) {
  (void)context;
  char here;
  printf("overflow %d code %d near the stack %d\n", number, info->si_code,
         labs((char*)info->si_addr - &here) > 4096);
  siglongjmp(back, 1);
}

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static int recurse(int depth) {
  volatile char page[4096];
  page[0] = (char)depth;
  return recurse(depth + 1) + page[0];
}

static void* directed(void* argument) {
  const unsigned char* at = argument;
  CHECK(is_data(at, 0, DATA_SIZE));
  pthread_kill(pthread_self(), SIGSEGV);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  const unsigned char* at = map_data(argv[1]);
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
  static const int numbers[] = {SIGSEGV, SIGBUS};
  for (int i = 0; i < 2; ++i) {
    int number = numbers[i];
    kill(getpid(), number);
    raise(number);
    sigqueue(getpid(), number, (union sigval){.sival_int = 77});
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int before = got;
    kill(getpid(), number);
    CHECK(is_data(at, 0, DATA_SIZE / 2));
    CHECK(got == before);
    puts("waits");
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(got == before + 1);
  }
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, directed, (void*)at) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  static char alternate[65536];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  CHECK(sigaltstack(&stack, NULL) == 0);
  action.sa_sigaction = overflow_handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  for (volatile int i = 0; i < 3; ++i) {
    if (sigsetjmp(back, 1) == 0) recurse(0);
    CHECK(is_data(at + (size_t)i * 20 * CELL, (size_t)i * 20 * CELL, 20 * CELL));
  }
  CHECK(is_data(at, 0, DATA_SIZE));
  return 0;
}
