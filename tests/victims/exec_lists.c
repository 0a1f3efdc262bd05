// execl, execle and execlp: the new program gets the mask, what is ignored, and arguments that lie
// in a mapping.
#include "tests/victims/victim.h"

extern char** environ;

static char** arguments;

static void child(int argc, char** argv) {
  sigset_t mask;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0);
  printf("  mask:");
  for (int i = 1; i < 65; ++i) {
    if (sigismember(&mask, i) == 1) printf(" %d", i);
  }
  struct sigaction now;
  CHECK(sigaction(SIGSEGV, NULL, &now) == 0);
  printf("; %s; colour %s;", now.sa_handler == SIG_IGN ? "ignored" : "not ignored",
         getenv("COLOUR") ? getenv("COLOUR") : "none");
  for (int i = 5; i < argc; ++i) printf(" %016lx", digest_of(argv[i], strlen(argv[i])));
  printf("\n");
  fflush(stdout);
}

static void run(void* how) {
  const char* kind = how;
  const char* path = "/proc/self/exe";
  const char* data = (const char*)map_data(arguments[1]);
  printf("%016lx\n", digest_of(data, DATA_SIZE / 4));
  fflush(stdout);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGSEGV);
  sigaddset(&set, SIGUSR2);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
  const char* far = data + DATA_SIZE * 3 / 4;  // where nothing has been read yet
  char *zero = arguments[0], *one = arguments[1], *two = arguments[2], *three = arguments[3];
  char* const environment[] = {"COLOUR=blue", NULL};
  if (!strcmp(kind, "execl")) execl(path, zero, one, two, three, "child", far, "z", NULL);
  if (!strcmp(kind, "execle"))
    execle(path, zero, one, two, three, "child", far, "z", NULL, environment);
  if (!strcmp(kind, "execlp")) execlp(path, zero, one, two, three, "child", far, "z", NULL);
  if (!strcmp(kind, "missing")) {
    printf("missing %d", execl("/no/such/program", "a", far, NULL));
    printf(" %d\n", errno);
    printf("missing %d", execlp("no-such-program", "a", far, NULL));
    printf(" %d\n", errno);
    sigset_t mask;
    CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0);
    printf("still blocked %d\n", sigismember(&mask, SIGSEGV));
    CHECK(is_data(data, 0, DATA_SIZE));
    return;
  }
  CHECK(false);
}

int main(int argc, char** argv) {
  CHECK(argc > 3);
  if (argc > 4) {
    child(argc, argv);
    return 0;
  }
  arguments = argv;
  in_child("execl", run, "execl");
  in_child("execle", run, "execle");
  in_child("execlp", run, "execlp");
  in_child("missing", run, "missing");
  return 0;
}
