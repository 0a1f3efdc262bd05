// Children of every kind and ways to end: forks ... KIND.
#include <spawn.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "tests/victims/victim.h"

extern char** environ;
static char** arguments;
static const unsigned char* at;
static atomic_bool finished;

static void read_all(void* argument) {
  (void)argument;
  CHECK(is_data(at, 0, DATA_SIZE));
  printf("%016lx\n", digest_of(at, DATA_SIZE));
}

static void map_and_read(void* argument) {
  at = map_data(arguments[1]);
  read_all(argument);
}

static void before(void) {  // each child maps for itself
  for (int i = 0; i < 4; ++i) in_child("child", map_and_read, NULL);
  map_and_read(NULL);
}

static void nested(void* argument) {
  read_all(NULL);
  in_child("grandchild", read_all, argument);
  in_child("grandchild with its own", map_and_read, argument);
}

static void after(void) {  // each child inherits a mapping that is half read
  at = map_data(arguments[1]);
  CHECK(is_data(at, 0, DATA_SIZE / 2));
  for (int i = 0; i < 3; ++i) in_child("child", nested, NULL);
  read_all(NULL);
  pid_t children[6];
  fflush(stdout);
  for (int i = 0; i < 6; ++i) {  // all at once, and the parent reads meanwhile
    if ((children[i] = fork()) == 0) _exit(is_data(at, 0, DATA_SIZE) ? i : 50);
  }
  CHECK(is_data(at, 0, DATA_SIZE));
  for (int i = 0; i < 6; ++i) {
    int status;
    CHECK(waitpid(children[i], &status, 0) == children[i]);
    say_status("at once", status);
  }
}

static void* reader(void* argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument;
  while (!finished) {
    size_t offset = draw(&state) % (DATA_SIZE - CELL);
    CHECK(is_data(at + offset, offset, 300));
  }
  return NULL;
}

static void threaded(void) {  // other threads trip cells at the moment of the fork
  at = map_data(arguments[1]);
  pthread_t threads[3];
  for (size_t i = 0; i < 3; ++i) CHECK(pthread_create(&threads[i], NULL, reader, (void*)i) == 0);
  int good = 0;
  for (int i = 0; i < 60; ++i) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(is_data(at, 0, DATA_SIZE / 3) ? 0 : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    good += status == 0;
  }
  finished = true;
  for (int i = 0; i < 3; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  printf("%d good\n", good);
}

static void wait_for(const char* what, pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  say_status(what, status);
}

static void vforked(void) {
  at = map_data(arguments[1]);
  CHECK(is_data(at, 0, CELL * 3));
  for (int i = 0; i < 10; ++i) {
    pid_t child = vfork();
    if (child == 0) {
      // What a careful spawner does between vfork and exec.
      int fd = open(arguments[1], O_RDONLY);
      if (fd >= 0) dup2(fd, 0);
      if (fd > 0) close(fd);
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, NULL);
      signal(SIGPIPE, SIG_DFL);
      close_range(3, ~0U, 0);
      if (i % 3 == 2) _exit((int)at[(size_t)i * 6 * CELL]);
      if (i % 3 == 1) execl("/no/such/program", "x", NULL), _exit(44);
      execl("/usr/bin/head", "head", "-c", "3", "/dev/null", NULL);
      _exit(45);
    }
    wait_for("vfork", child);
    CHECK(is_data(at + (size_t)i * 15 * CELL, (size_t)i * 15 * CELL, 15 * CELL));
  }
  read_all(NULL);
}

static void spawned(void) {
  at = map_data(arguments[1]);
  CHECK(is_data(at, 0, CELL * 3));
  fflush(stdout);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  CHECK(posix_spawn_file_actions_init(&actions) == 0 && posix_spawnattr_init(&attributes) == 0);
  CHECK(posix_spawn_file_actions_addopen(&actions, 0, arguments[1], O_RDONLY, 0) == 0);
  CHECK(posix_spawn_file_actions_adddup2(&actions, 1, 2) == 0);
  CHECK(posix_spawn_file_actions_addclosefrom_np(&actions, 3) == 0);
  CHECK(posix_spawn_file_actions_addopen(&actions, 7, arguments[1], O_RDONLY, 0) == 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGSEGV);
  CHECK(posix_spawnattr_setsigdefault(&attributes, &set) == 0);
  CHECK(posix_spawnattr_setsigmask(&attributes, &set) == 0);
  CHECK(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK) == 0);
  pid_t child;
  CHECK(posix_spawnp(&child, "cksum", &actions, &attributes, (char*[]){"cksum", NULL}, environ) ==
        0);
  wait_for("spawnp", child);
  char* list[] = {"ls", "-l", "/proc/self/fd/", NULL};
  CHECK(posix_spawnp(&child, "true", &actions, NULL, list, environ) == 0);
  wait_for("true", child);
  CHECK(posix_spawn(&child, "/no/such", NULL, NULL, list, environ) == ENOENT);
  printf("system %d\n", system("cksum < /dev/null; exit 3"));
  fflush(stdout);
  FILE* from = popen("head -c 1000 /dev/zero | cksum", "r");
  char line[100] = "";
  CHECK(from && fgets(line, sizeof line, from));
  printf("popen %s", line);
  printf("pclose %d\n", pclose(from));
  fflush(stdout);
  FILE* to = popen("cat; exit 5", "w");
  CHECK(to && fwrite(at + 9 * CELL - 50, 1, 100, to) == 100);
  printf("pclose %d\n", pclose(to));
  read_all(NULL);
}

static void exec_self(void) {
  int round = arguments[5] ? atoi(arguments[5]) : 0;
  at = map_data(arguments[1]);
  CHECK(is_data(at, 0, DATA_SIZE / 4 * (size_t)(round + 1)));
  printf("round %d\n", round);
  fflush(stdout);
  if (round == 3) return;
  char next[16];
  snprintf(next, sizeof next, "%d", round + 1);
  char* vector[] = {arguments[0], arguments[1], arguments[2], arguments[3], "exec", next, NULL};
  if (round == 0) execve(arguments[0], vector, environ);
  if (round == 1) execvp(arguments[0], vector);
  if (round == 2) {
    int fd = open(arguments[0], O_RDONLY | O_CLOEXEC);
    fexecve(fd, vector, environ);
  }
  _exit(60);
}

static void* exec_in_thread(void* argument) {
  (void)argument;
  char* vector[] = {arguments[0], arguments[1], arguments[2], arguments[3], "exec", "3", NULL};
  execv(arguments[0], vector);
  _exit(61);
}
static void exec_from_thread_body(void* argument) {
  (void)argument;
  at = map_data(arguments[1]);
  CHECK(is_data(at, 0, DATA_SIZE / 2));
  pthread_t thread;
  pthread_create(&thread, NULL, exec_in_thread, NULL);
  for (;;) CHECK(is_data(at, 0, DATA_SIZE));
}
static void thread_exec(void) {
  for (int i = 0; i < 5; ++i) in_child("exec in a thread", exec_from_thread_body, NULL);
}

static void farewell(void) { write(1, "atexit\n", 7); }
static void quick_farewell(void) { write(1, "at_quick_exit\n", 14); }
static void* end_process(void* argument) {
  int way = (int)(intptr_t)argument;
  CHECK(is_data(at, 0, DATA_SIZE / 2));
  if (way == 0) _exit(10);
  if (way == 1) exit(11);
  if (way == 2) quick_exit(12);
  if (way == 3) _Exit(13);
  if (way == 4) syscall(SYS_exit_group, 14);
  if (way == 5) kill(getpid(), SIGTERM), pause();
  if (way == 6) pthread_exit(NULL);
  return NULL;
}
static void end_somehow(void* argument) {
  atexit(farewell);
  at_quick_exit(quick_farewell);
  at = map_data(arguments[1]);
  intptr_t way = (intptr_t)argument;
  if (way < 10) end_process((void*)way);
  pthread_t thread, other;
  pthread_create(&other, NULL, reader, NULL);
  pthread_create(&thread, NULL, end_process, (void*)(way - 10));
  if (way == 16) {
    pthread_join(thread, NULL);
    _exit(20);
  }
  for (;;) CHECK(is_data(at, 0, DATA_SIZE));
}
static void exits(void) {
  for (intptr_t way = 0; way < 17; ++way) {
    if (way == 7) way = 10;
    char what[20];
    snprintf(what, sizeof what, "way %d", (int)way);
    in_child(what, end_somehow, (void*)way);
  }
}

static void daemonised(void) {  // double fork, as launchers do; the grandchild reports by a pipe
  at = map_data(arguments[1]);
  CHECK(is_data(at, 0, CELL));
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    if (chdir("/") != 0) _exit(1);
    uint64_t digest = digest_of(at, DATA_SIZE);
    CHECK(write(ends[1], &digest, sizeof digest) == sizeof digest);
    _exit(0);
  }
  wait_for("launcher", child);
  close(ends[1]);
  uint64_t digest = 0, none;
  CHECK(read(ends[0], &digest, sizeof digest) == sizeof digest);
  CHECK(read(ends[0], &none, sizeof none) == 0);
  printf("%016lx\n", digest);
  // No other process's child is ever found here.
  printf("wait %d", waitpid(-1, NULL, WNOHANG));
  printf(" %d\n", errno);
}

int main(int argc, char** argv) {
  CHECK(argc > 4);
  arguments = argv;
  static const struct {
    const char* name;
    void (*run)(void);
  } kinds[] = {{"before", before},           {"after", after},   {"threaded", threaded},
               {"vfork", vforked},           {"spawn", spawned}, {"exec", exec_self},
               {"thread-exec", thread_exec}, {"exits", exits},   {"daemon", daemonised}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (!strcmp(kinds[i].name, argv[4])) kinds[i].run();
  }
  return 0;
}
