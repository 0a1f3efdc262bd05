// What the application asks about its signal masks is what it set, SIGSEGV included; threads and
// exec'd children inherit exactly that.
#include "tests/victims/victim.h"

extern char** environ;

static void say(const char* what) {
  sigset_t a, b;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &a) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, NULL, &b) == 0);
  printf("%s:", what);
  for (int i = 1; i < 65; ++i) {
    CHECK(sigismember(&a, i) == sigismember(&b, i));
    if (sigismember(&a, i) == 1) printf(" %d", i);
  }
  printf("\n");
  fflush(stdout);
}

static void* thread(void* argument) {
  say("thread");
  const unsigned char* at = argument;
  CHECK(is_data(at, 0, DATA_SIZE));
  return NULL;
}

static void on_segv(int number) {
  (void)number;
  say("in a handler");
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  if (argc > 4) {  // the exec'd child
    say("exec'd");
    struct sigaction now;
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0);
    printf("exec'd action: %s\n", now.sa_handler == SIG_DFL   ? "default"
                                  : now.sa_handler == SIG_IGN ? "ignore"
                                                              : "other");
    const unsigned char* at = map_data(argv[1]);
    CHECK(is_data(at, 0, DATA_SIZE));
    return 0;
  }
  say("at first");
  const unsigned char* at = map_data(argv[1]);
  sigset_t set, old;
  sigfillset(&set);
  CHECK(sigprocmask(SIG_BLOCK, &set, &old) == 0);
  say("all blocked");
  CHECK(is_data(at, 0, DATA_SIZE));
  pthread_t id;
  CHECK(pthread_create(&id, NULL, thread, (void*)at) == 0);
  CHECK(pthread_join(id, NULL) == 0);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &set, &old) == 0);
  printf("was blocked: SEGV %d BUS %d USR1 %d KILL %d\n", sigismember(&old, SIGSEGV),
         sigismember(&old, SIGBUS), sigismember(&old, SIGUSR1), sigismember(&old, SIGKILL));
  say("one unblocked");
  printf("bad how: %d", sigprocmask(77, &set, NULL));
  printf(" %d\n", errno);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    say("forked");
    execve("/proc/self/exe", (char*[]){argv[0], argv[1], argv[2], argv[3], "child", NULL}, environ);
    _exit(98);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  say_status("child", status);
  CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
  child = fork();
  if (child == 0) {
    execve("/proc/self/exe", (char*[]){argv[0], argv[1], argv[2], argv[3], "child", NULL}, environ);
    _exit(98);
  }
  CHECK(waitpid(child, &status, 0) == child);
  say_status("child", status);
  sigemptyset(&set);
  CHECK(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
  struct sigaction action = {.sa_handler = on_segv};
  sigaddset(&action.sa_mask, SIGBUS);
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  raise(SIGSEGV);
  say("after it");
  // sigsuspend and pselect-like waits replace the mask for a while.
  sigaddset(&set, SIGSEGV);
  CHECK(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
  raise(SIGSEGV);
  sigset_t none;
  sigemptyset(&none);
  CHECK(sigsuspend(&none) == -1 && errno == EINTR);
  say("suspended and back");
  CHECK(is_data(at, 0, DATA_SIZE));
  return 0;
}
