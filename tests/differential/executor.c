// executor PROGRAM LOG TREE            runs a program; the first process, actor 0
// executor PROGRAM LOG TREE ACTOR A B  a process that a step began; A and B are the sockets
#include "tests/differential/executor.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

struct shared* g_shared;
struct program g_program;
const char* g_self;
const char* g_arguments[3];
char g_tree[1024];
int g_process;
int g_socket[2] = {-1, -1};
__thread int g_actor, g_step;
__thread unsigned char g_buffer[kBuffer];

static pthread_t threads[kActors];
static _Atomic bool started[kActors];

void broken(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  syscall(SYS_write, 2, text, length);
  syscall(SYS_write, 2, "\n", 1);
  syscall(SYS_exit_group, 98);
  abort();
}

// A whole program's log is far below the buffer's size; what is beyond it is cut off, the same in
// both runs.
void say(const char* format, ...) {
  char text[4096];
  const int saved = errno;
  int length = snprintf(text, sizeof text, "%d ", g_step);
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(text + length, sizeof text - (size_t)length - 1, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof text - 2) length = sizeof text - 2;
  text[length++] = '\n';
  const uint32_t at = atomic_fetch_add(&g_shared->used, (uint32_t)length);
  if (at + (uint32_t)length <= kLog) memcpy(g_shared->log + at, text, (size_t)length);
  errno = saved;
}

void say_result(long result) {
  if (result == -1) {
    say("-1 %s", strerrorname_np(errno));
  } else {
    say("%ld", result);
  }
}

uint64_t digest(uint64_t start, const void* bytes, size_t size) {
  const unsigned char* at = bytes;
  for (size_t i = 0; i < size; ++i) start = (start ^ at[i]) * 1099511628211ULL;
  return start;
}

void say_bytes(long result, const void* bytes) {
  if (result <= 0) {
    say_result(result);
  } else {
    say("%ld %016lx", result, digest(14695981039346656037ULL, bytes, (size_t)result));
  }
}

const char* word(const struct step* step, int index) {
  return index < step->count ? step->words[index] : "";
}

long number(const struct step* step, int index) { return strtol(word(step, index), NULL, 0); }

int* slot(const struct step* step, int index) {
  return &g_shared->processes[g_process].fds[(unsigned long)number(step, index) % kSlots];
}

struct shared_map* map_slot(const struct step* step, int index) {
  return &g_shared->processes[g_process].maps[(unsigned long)number(step, index) % kMaps];
}

const char* path(const struct step* step, int index) {
  static __thread char paths[4][2048];
  static __thread unsigned next;
  const char* name = word(step, index);
  if (name[0] == '/') return name;
  if (name[0] == '@') return name + 1;
  char* made = paths[next++ % 4];
  snprintf(made, sizeof paths[0], "%s/%s", g_tree, name);
  return made;
}

// The baton.

static long futex(_Atomic uint32_t* at, int operation, uint32_t value,
                  const struct timespec* time) {
  return syscall(SYS_futex, at, operation, value, time, NULL, 0);
}

static int birth_of(int actor) {  // the step that begins it
  for (int i = 0; i < g_program.count; ++i) {
    const struct step* step = &g_program.steps[i];
    static const char* const kBirths[] = {"thread", "fork", "vfork", "spawn", "outside"};
    for (size_t b = 0; b < sizeof kBirths / sizeof *kBirths; ++b) {
      if (strcmp(step->words[0], kBirths[b]) == 0 && number(step, 1) == actor) return i;
    }
  }
  return -1;
}

static bool is_gone(int actor, uint32_t now) {
  const uint32_t state = atomic_load(&g_shared->state[actor]);
  return state == kDead || (state == kUnborn && birth_of(actor) < (int)now);
}

static void pass_from(uint32_t from) {
  uint32_t next = from + 1;
  while (next < (uint32_t)g_program.count && is_gone(g_program.steps[next].actor, next)) ++next;
  atomic_compare_exchange_strong(&g_shared->turn, &from, next);
  futex(&g_shared->turn, FUTEX_WAKE, INT32_MAX, NULL);
}

static bool has_ended(int32_t pid) {
  char name[64], text[512];
  snprintf(name, sizeof name, "/proc/%d/stat", pid);
  const long fd = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
  // Where no descriptor is left, the signal that is none says whether there is such a process; a
  // zombie counts as one until it is waited for.
  if (fd < 0) return syscall(SYS_kill, pid, 0) != 0 && errno == ESRCH;
  const long got = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  if (got <= 0) return true;
  text[got] = '\0';
  const char* state = strrchr(text, ')');
  return state == NULL || strchr("ZX", state[2]) != NULL;
}

static void bury(int process) {
  for (int actor = 0; actor < kActors; ++actor) {
    if (atomic_load(&g_shared->state[actor]) == kAlive &&
        atomic_load(&g_shared->process[actor]) == process) {
      atomic_store(&g_shared->state[actor], kDead);
    }
  }
}

void leave_for_good(void) {
  if (g_program.race) return;
  bury(g_process);
  pass_from((uint32_t)g_step);
}

void give_birth(int actor, int process) {
  atomic_store(&g_shared->process[actor], process);
  atomic_store(&g_shared->process_id[actor],
               process == g_process ? (int32_t)syscall(SYS_getpid) : 0);
  atomic_store(&g_shared->state[actor], kAlive);
}

// False if the step was passed over: the actor was taken for dead.
static bool wait_for_turn(uint32_t index) {
  const struct timespec pause = {0, 20000000};
  const time_t deadline = time(NULL) + 40;
  for (;;) {
    const uint32_t turn = atomic_load(&g_shared->turn);
    if (turn >= index) return turn == index;
    if (futex(&g_shared->turn, FUTEX_WAIT, turn, &pause) == 0 || errno != ETIMEDOUT) continue;
    if (atomic_load(&g_shared->turn) != turn) continue;
    const int actor = g_program.steps[turn].actor;
    const int32_t pid = atomic_load(&g_shared->process_id[actor]);
    if (pid > 0 && has_ended(pid)) {
      bury(atomic_load(&g_shared->process[actor]));
      pass_from(turn);
    } else if (is_gone(actor, turn)) {
      pass_from(turn);
    } else if (time(NULL) > deadline) {
      g_step = (int)turn;
      say("stuck");
      syscall(SYS_exit_group, 90);
    }
  }
}

static perform_fn* find_operation(const char* name) {
  static const struct operation* const kAll[] = {
      kFileOperations,    kReadOperations,     kMapOperations,    kPathOperations,
      kProcessOperations, kIdentityOperations, kSignalOperations, kRaceOperations};
  for (size_t i = 0; i < sizeof kAll / sizeof *kAll; ++i) {
    for (const struct operation* one = kAll[i]; one->name != NULL; ++one) {
      if (strcmp(one->name, name) == 0) return one->perform;
    }
  }
  broken("no operation '%s'", name);
}

void run_actor(int actor) {
  g_actor = actor;
  if (actor == g_process) atomic_store(&g_shared->process_id[actor], (int32_t)syscall(SYS_getpid));
  for (int i = 0; i < g_program.count; ++i) {
    const struct step* step = &g_program.steps[i];
    if (step->actor != actor) continue;
    if (!g_program.race && !wait_for_turn((uint32_t)i)) return;
    g_step = i;
    errno = 0;
    find_operation(step->words[0])(step);
    // A fork's child comes out of its parent's step once it has run its own.
    if (g_actor != actor) end_process(0);
    if (!g_program.race) pass_from((uint32_t)i);
  }
  if (g_program.race) {
    atomic_store(&g_shared->state[actor], kDead);
  } else {
    // What the process has locked and opened stays until the program ends.
    wait_for_turn((uint32_t)g_program.count);
  }
}

static void* thread_main(void* argument) {
  run_actor((int)(intptr_t)argument);
  return NULL;
}

void begin_thread(const struct step* step) {
  const int actor = (int)number(step, 1);
  give_birth(actor, g_process);
  const int result = pthread_create(&threads[actor], NULL, thread_main, (void*)(intptr_t)actor);
  if (result == 0) {
    atomic_store(&started[actor], true);
  } else {
    atomic_store(&g_shared->state[actor], kDead);
  }
  say_result(result);
}

const char* ending(int status) {
  static __thread char text[32];
  snprintf(text, sizeof text, WIFEXITED(status) ? "exit %d" : "signal %d",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  return text;
}

int actor_of(int32_t pid) {
  for (int actor = 0; actor < kActors; ++actor) {
    if (atomic_load(&g_shared->process_id[actor]) == pid &&
        atomic_load(&g_shared->process[actor]) == actor) {
      return actor;
    }
  }
  return -1;
}

void end_process(int status) {
  for (int actor = 0; actor < kActors; ++actor) {
    if (atomic_exchange(&started[actor], false) && !pthread_equal(threads[actor], pthread_self()))
      pthread_join(threads[actor], NULL);
  }
  // In the order of their actors, which is not that in which they end.
  int ended[kActors];
  memset(ended, -1, sizeof ended);
  int child_status;
  for (pid_t child; (child = waitpid(-1, &child_status, 0)) > 0 || errno == EINTR;) {
    const int actor = child > 0 ? actor_of(child) : -1;
    if (actor >= 0) ended[actor] = child_status;
  }
  g_step = g_program.count + g_process;
  for (int actor = 0; actor < kActors; ++actor) {
    if (ended[actor] != -1) say("actor %d: %s", actor, ending(ended[actor]));
  }
  exit(status);
}

void forget_threads(void) {
  for (int actor = 0; actor < kActors; ++actor) atomic_store(&started[actor], false);
}

static void parse(const char* file) {
  const long fd = syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
  const long size = fd < 0 ? -1 : syscall(SYS_read, fd, g_program.text, sizeof g_program.text - 1);
  if (size < 0 || size == sizeof g_program.text - 1) broken("%s cannot be read", file);
  syscall(SYS_close, fd);
  char* rest = NULL;
  for (char* line = strtok_r(g_program.text, "\n", &rest); line != NULL;
       line = strtok_r(NULL, "\n", &rest)) {
    struct step step = {0};
    char* more = NULL;
    const char* words[kWords + 1];
    int count = 0;
    for (char* one = strtok_r(line, " ", &more); one != NULL && count <= kWords;
         one = strtok_r(NULL, " ", &more)) {
      words[count++] = one;
    }
    if (count == 0 || words[0][0] == '#') continue;
    if (strcmp(words[0], "race") == 0) {
      g_program.race = true;
    } else if (strcmp(words[0], "wait") == 0) {
      g_program.wait = true;
    } else if (strcmp(words[0], "file") == 0 && count > 1) {
      if (g_program.file_count == kFiles) broken("too many files");
      g_program.files[g_program.file_count++] = words[1];
    } else {
      step.actor = atoi(words[0]);
      step.count = count - 1;
      for (int i = 1; i < count; ++i) step.words[i - 1] = words[i];
      if (step.count == 0 || step.actor < 0 || step.actor >= kActors || g_program.count == kSteps)
        broken("a line that is no step, or too many: %s", line);
      g_program.steps[g_program.count++] = step;
    }
  }
}

static void map_log(const char* file) {
  const long fd = syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
  if (fd < 0) broken("%s: %s", file, strerror(errno));
  const long memory =
      syscall(SYS_mmap, NULL, sizeof *g_shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
  if (memory == -1) broken("%s: %s", file, strerror(errno));
  g_shared = (struct shared*)memory;
  syscall(SYS_close, fd);
}

// Far above what a program uses and below any limit that it sets before it means to.
static void open_sockets(void) {
  long pair[2];
  int two[2];
  if (syscall(SYS_socketpair, 1, 1 /* SOCK_STREAM */, 0, two) != 0) broken("no sockets");
  for (int i = 0; i < 2; ++i) {
    pair[i] = syscall(SYS_fcntl, two[i], F_DUPFD, 200);
    syscall(SYS_close, two[i]);
    g_socket[i] = (int)pair[i];
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--size") == 0) {  // of the log, which the driver makes
    printf("%zu %zu %zu\n", sizeof(struct shared), offsetof(struct shared, opened),
           offsetof(struct shared, log));
    return 0;
  }
  if (argc != 4 && argc != 7) broken("executor PROGRAM LOG TREE [ACTOR SOCKET SOCKET]");
  g_self = argv[0];
  for (int i = 0; i < 3; ++i) g_arguments[i] = argv[i + 1];
  snprintf(g_tree, sizeof g_tree, "%s", argv[3]);
  parse(argv[1]);
  map_log(argv[2]);
  prepare_signals();
  if (argc == 4) {
    remember_files();
    memset(g_shared->processes[0].fds, -1, sizeof g_shared->processes[0].fds);
    if (syscall(SYS_chdir, g_tree) != 0) broken("%s: %s", g_tree, strerror(errno));
    open_sockets();
    give_birth(0, 0);
    declare_samples();
    run_actor(0);
  } else {
    g_process = atoi(argv[4]);
    g_socket[0] = atoi(argv[5]);
    g_socket[1] = atoi(argv[6]);
    run_actor(g_process);
  }
  end_process(0);
}
