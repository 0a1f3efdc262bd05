// Where a signal mask lives beside the thread's own: saved by sigsetjmp and getcontext, in the
// actions of other signals, in threads that block everything, in thread attributes. What was set
// before the first mapping holds after it, and what comes back is what was saved.
#include <poll.h>
#include <ucontext.h>

#include "tests/victims/victim.h"

static const char* path;
static const unsigned char* data;
static sigjmp_buf saved;
static volatile int order[8], steps;

static void say(const char* what) {
  sigset_t mask, pending;
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
  CHECK(sigpending(&pending) == 0);
  printf("  %s:", what);
  for (int i = 1; i < 65; ++i) {
    if (sigismember(&mask, i) == 1) printf(" %d", i);
    if (sigismember(&pending, i) == 1) printf(" %d(pending)", i);
  }
  printf("\n");
  fflush(stdout);
}

static void block(int how, int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  CHECK(sigprocmask(how, &set, NULL) == 0);
}

static void note(int number) { order[steps++] = number; }
static void say_order(void) {
  printf("  order:");
  for (int i = 0; i < steps; ++i) printf(" %d", order[i]);
  printf("\n");
  fflush(stdout);
}

static void jumps(void* before) {
  block(SIG_BLOCK, SIGSEGV);
  if (before == NULL) data = map_data(path);
  if (sigsetjmp(saved, 1) == 0) {
    block(SIG_UNBLOCK, SIGSEGV);
    if (before != NULL) data = map_data(path);
    CHECK(is_data(data, 0, DATA_SIZE / 2));
    say("before the jump");
    siglongjmp(saved, 1);
  }
  say("after the jump");
  CHECK(is_data(data, 0, DATA_SIZE));  // blocked, yet checkpoints open
  raise(SIGSEGV);
  say("sent");
  signal(SIGSEGV, note);
  block(SIG_UNBLOCK, SIGSEGV);
  say("unblocked");
  say_order();
}

static void other(int number) {
  say("in the other's handler");
  raise(SIGSEGV);
  note(number);
  CHECK(data == NULL || is_data(data, 0, DATA_SIZE));
  say("at its end");
}

// The kernel blocks what the other signal's action names, and unblocks it on return.
static void actions(void* before) {
  struct sigaction action = {.sa_handler = other}, now;
  sigfillset(&action.sa_mask);
  if (before == NULL) data = map_data(path);
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  if (before != NULL) data = map_data(path);
  signal(SIGSEGV, note);
  raise(SIGUSR1);
  say_order();
  say("back");
  CHECK(sigaction(SIGUSR1, NULL, &now) == 0);
  printf("  action's mask:");
  for (int i = 1; i < 65; ++i) {
    if (sigismember(&now.sa_mask, i) == 1) printf(" %d", i);
  }
  printf("\n");
}

static int ready[2], go[2];
static void* blocked_thread(void* argument) {
  (void)argument;
  char byte = 0;
  say("blocked thread");
  CHECK(write(ready[1], "r", 1) == 1 && read(go[0], &byte, 1) == 1);
  CHECK(is_data(data, 0, DATA_SIZE));
  say("blocked thread has read");
  return NULL;
}

// Threads that inherited a full mask long before the first mapping.
static void threads(void* by_attribute) {
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  CHECK(pipe(ready) == 0 && pipe(go) == 0);
  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);
  if (by_attribute != NULL) {
    CHECK(pthread_attr_setsigmask_np(&attributes, &all) == 0);
  } else {
    CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
  }
  pthread_t id, late;
  CHECK(pthread_create(&id, &attributes, blocked_thread, NULL) == 0);
  CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
  char byte;
  CHECK(read(ready[0], &byte, 1) == 1);
  data = map_data(path);
  CHECK(is_data(data, 0, DATA_SIZE / 2));
  CHECK(write(go[1], "g", 1) == 1);
  CHECK(pthread_join(id, NULL) == 0);
  data = map_data(path);
  if (by_attribute == NULL) CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
  CHECK(pthread_create(&late, &attributes, blocked_thread, NULL) == 0);
  CHECK(write(go[1], "g", 1) == 1);
  CHECK(pthread_join(late, NULL) == 0);
  say("main");
}

static void* wait_for_it(void* argument) {
  const sigset_t* set = argument;
  int got = 0;
  CHECK(sigwait(set, &got) == 0);
  printf("  the waiting thread got %d\n", got);
  return NULL;
}

// One thread takes the signals that all block.
static void waiting(void* before) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGSEGV);
  if (before == NULL) data = map_data(path);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  pthread_t id;
  CHECK(pthread_create(&id, NULL, wait_for_it, &set) == 0);
  if (before != NULL) data = map_data(path);
  CHECK(is_data(data, 0, DATA_SIZE / 2));
  CHECK(kill(getpid(), SIGSEGV) == 0);
  CHECK(pthread_join(id, NULL) == 0);
  kill(getpid(), SIGSEGV);
  say("sent to the process");
  signal(SIGSEGV, note);
  sigset_t none;
  sigemptyset(&none);
  CHECK(sigsuspend(&none) == -1 && errno == EINTR);
  say_order();
  say("suspended and back");
  raise(SIGSEGV);
  struct timespec soon = {.tv_sec = 20};
  CHECK(ppoll(NULL, 0, &soon, &none) == -1 && errno == EINTR);
  say_order();
  say("polled and back");
}

static void contexts(void* argument) {
  (void)argument;
  static ucontext_t at;
  static volatile bool again;
  data = map_data(path);
  block(SIG_BLOCK, SIGSEGV);
  CHECK(getcontext(&at) == 0);
  if (!again) {
    again = true;
    block(SIG_UNBLOCK, SIGSEGV);
    setcontext(&at);
  }
  say("context");
  CHECK(is_data(data, 0, DATA_SIZE));
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  path = argv[1];
  in_child("jumps, mapped first", jumps, NULL);
  in_child("jumps, mapped later", jumps, argv);
  in_child("actions, mapped first", actions, NULL);
  in_child("actions, mapped later", actions, argv);
  in_child("threads by inheritance", threads, NULL);
  in_child("threads by attribute", threads, argv);
  in_child("waiting, mapped first", waiting, NULL);
  in_child("waiting, mapped later", waiting, argv);
  in_child("contexts", contexts, NULL);
  return 0;
}
