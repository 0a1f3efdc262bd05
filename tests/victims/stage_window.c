// Copies in memory never leave the window that they were given in: what once showed the difference.
// Each case prints the same without the library. The third argument of some is for a helper
// process.
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/victims/stage.h"

extern char** environ;
static char* self;

static const char* const kNames[] = {"f0", "f1", "f2", "f3", "sub/g0", "deep/er/h0"};

static void stage_all(void) {
  begin_stage(kNames, sizeof kNames / sizeof *kNames);
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) wait_copy(at(kNames[i]));
}

// --- a descriptor is changed over while a thread reads it ----------------------------------------

static atomic_bool done_reading;
static int read_fd;
static uint64_t read_digest;

static void* read_to_end(void* use_stdio) {
  begin_window();
  for (int i = 0; i < 2; ++i) {  // twice, so that the thread's first open is not special
    read_fd = open_copy(at("f3"), O_RDONLY);
    char piece[512];
    uint64_t digest = DIGEST_START;
    if (use_stdio != NULL) {
      FILE* file = fdopen(read_fd, "r");
      size_t got;
      while ((got = fread(piece, 1, 1 + (size_t)(rand() % 500), file)) > 0) {
        digest = digest_more(digest, piece, got);
      }
      fclose(file);
    } else {
      ssize_t got;
      while ((got = read(read_fd, piece, sizeof piece)) > 0) {
        digest = digest_more(digest, piece, (size_t)got);
      }
      close(read_fd);
    }
    read_digest = digest;
  }
  end_window();
  atomic_store(&done_reading, true);
  return NULL;
}

static void reading_while(void (*change)(void), void* use_stdio) {
  stage_all();
  for (int round = 0; round < 20; ++round) {
    atomic_store(&done_reading, false);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, read_to_end, use_stdio) == 0);
    do {
      change();
    } while (!atomic_load(&done_reading));
    CHECK(pthread_join(thread, NULL) == 0);
    say("%d: %lx", round, read_digest);
  }
}
static void by_fork(void) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  CHECK(waitpid(pid, NULL, 0) == pid);
}
static void by_spawn(void) {
  char* argv[] = {"true", NULL};
  pid_t pid;
  CHECK(posix_spawnp(&pid, "true", NULL, NULL, argv, environ) == 0);
  CHECK(waitpid(pid, NULL, 0) == pid);
}
static void by_readlink(void) {
  char name[64], target[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", read_fd);
  CHECK(readlink(name, target, sizeof target) != 0);
}
static void read_while_forking(void) { reading_while(by_fork, NULL); }
static void read_while_spawning(void) { reading_while(by_spawn, NULL); }
static void read_while_asked_for_its_name(void) { reading_while(by_readlink, NULL); }
static void stream_while_forking(void) { reading_while(by_fork, ""); }
static void stream_while_asked_for_its_name(void) { reading_while(by_readlink, ""); }

// Streams are opened and closed all the time while their descriptor is changed over.
static void* open_and_close(void* use_stdio) {
  uint64_t digest = DIGEST_START;
  begin_window();
  for (int i = 0; i < 100000; ++i) {
    char piece[512];
    size_t got;
    FILE* file = fopen(at("f1"), "r");
    CHECK(file != NULL);
    read_fd = fileno(file);
    while ((got = fread(piece, 1, sizeof piece, file)) > 0)
      digest = digest_more(digest, piece, got);
    CHECK(feof(file) && fclose(file) == 0);
    if (use_stdio != NULL) continue;
    const int fd = open(at("f1"), O_RDONLY);
    CHECK(fd >= 0 && read(fd, piece, sizeof piece) > 0);
    digest = digest_more(digest, piece, sizeof piece);
    CHECK(close(fd) == 0);
  }
  end_window();
  say("%lx", digest);
  atomic_store(&done_reading, true);
  return NULL;
}
static void* ask(void* unused) {
  while (!atomic_load(&done_reading)) by_readlink();
  return unused;
}
static void opened_and_closed_while(void* use_stdio) {
  stage_all();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, open_and_close, use_stdio) == 0);
  pthread_t more[3];
  for (int i = 0; i < 3; ++i) CHECK(pthread_create(&more[i], NULL, ask, NULL) == 0);
  ask(NULL);
  for (int i = 0; i < 3; ++i) CHECK(pthread_join(more[i], NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}
static void stream_closed_while_asked_for_its_name(void) { opened_and_closed_while(""); }
static void numbers_reused_while_asked_for_their_names(void) { opened_and_closed_while(NULL); }

// --- locks ---------------------------------------------------------------------------------------

static void other_holds(const char* name) {
  const int fd = open(at(name), O_RDWR);
  CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  CHECK(pwrite(fd, "modified", 8, 0) == 8);
  CHECK(write(3, "x", 1) == 1);
  char byte;
  CHECK(read(4, &byte, 1) <= 0);
  _exit(0);
}

// Starts a process that has modified the file in place and holds all its locks; ended by the pipe.
static int hold(const char* name) {
  int ready[2], end[2];
  CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    // dup2 over the numbers that the helper uses.
    const int out = fcntl(ready[1], F_DUPFD, 100), in = fcntl(end[0], F_DUPFD, 100);
    dup2(out, 3);
    dup2(in, 4);
    char* argv[] = {self, "other_holds", folder, (char*)name, NULL};
    char* environment[] = {NULL};
    closefrom(5);
    execve(self, argv, environment);
    _exit(96);
  }
  char byte;
  close(ready[1]);
  CHECK(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(end[0]);
  return end[1];
}

static void say_locks(int fd) {
  SAY_RESULT(flock(fd, LOCK_SH | LOCK_NB));
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  SAY_RESULT(fcntl(fd, F_SETLK, &lock));
  lock.l_pid = 0;
  SAY_RESULT(fcntl(fd, F_OFD_SETLK, &lock));
  SAY_RESULT(lockf(fd, F_TEST, 1));
}

static void lock_of_modified_file(void) {
  stage_all();
  const int fd = open_copy(at("f3"), O_RDONLY);
  const int end = hold("f3");
  say_locks(fd);
  char text[9] = "";
  CHECK(pread(fd, text, 8, 0) == 8);
  say("%s", text);
  close(end);
}

static void lock_without_free_number(void) {
  stage_all();
  const int end = hold("f2");
  const int fd = open_copy(at("f2"), O_RDONLY);
  struct rlimit limit = {128, 4096};
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  while (dup(0) >= 0) {
  }
  CHECK(errno == EMFILE);
  say_locks(fd);
  say("%d", is_copy(fd));
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  say("limit %lu", (unsigned long)limit.rlim_cur);
  close(end);
}

// --- what outlives the window, or is given away --------------------------------------------------

static void kept_beyond_window(void) {
  stage_all();
  const int fd = open_copy(at("f3"), O_RDONLY), twin = dup(fd);
  char byte;
  CHECK(read(fd, &byte, 1) == 1);
  end_window();
  say("copies %d %d at %ld", is_copy(fd), is_copy(twin), (long)lseek(twin, 0, SEEK_CUR));
  const int outside = open(at("f3"), O_RDONLY);
  say("outside %d", is_copy(outside));
}

static void* open_elsewhere(void* result) {
  const int fd = open(at("f3"), O_RDONLY);
  *(bool*)result = is_copy(fd);
  close(fd);
  return NULL;
}
static void opened_by_another_thread(void) {
  stage_all();
  bool copy = true;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, open_elsewhere, &copy) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  say("thread %d", copy);
  const pid_t pid = fork();
  if (pid == 0) {
    open_elsewhere(&copy);
    _exit(copy);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid);
  say("child %d", WEXITSTATUS(status));
}

static void mapped(void) {
  stage_all();
  const int fd = open_copy(at("f2"), O_RDONLY);
  const char* shared = mmap(NULL, 5000, PROT_READ, MAP_SHARED, fd, 0);
  const char* own = mmap(NULL, 5000, PROT_READ, MAP_PRIVATE, open_copy(at("f3"), O_RDONLY), 0);
  CHECK(shared != MAP_FAILED && own != MAP_FAILED);
  const int writer = open(at("f2"), O_WRONLY);
  CHECK(pwrite(writer, "later", 5, 100) == 5);
  say("%.5s", shared + 100);
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[8192];
  int of_folder = 0, of_copies = 0;
  while (fgets(line, sizeof line, maps) != NULL) {
    of_folder += strstr(line, folder) != NULL;
    of_copies += strstr(line, "/sluice-") != NULL;
  }
  say("%d maps of the files, %d of copies", of_folder, of_copies);
}

static void given_away(void) {
  stage_all();
  const int fd = open_copy(at("f3"), O_RDONLY);
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
  char control[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  CHECK(sendmsg(ends[0], &message, 0) == 1 && recvmsg(ends[1], &message, 0) == 1);
  int got;
  memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
  say("copy %d", is_copy(got));
  CHECK(read(got, &byte, 1) == 1);
  say("at %ld", (long)lseek(fd, 0, SEEK_CUR));
}

static void other_reads(const char* number) {
  char byte;
  CHECK(read(atoi(number), &byte, 1) == 1);
  _exit(0);
}
static void offset_of_vfork_child(void) {
  stage_all();
  const int fd = open_copy(at("f3"), O_RDONLY);
  char number[16];
  snprintf(number, sizeof number, "%d", fd);
  char* argv[] = {self, "other_reads", folder, number, NULL};
  char* environment[] = {NULL};
  const pid_t pid = vfork();
  if (pid == 0) {
    execve(self, argv, environment);
    _exit(96);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  say("at %ld", (long)lseek(fd, 0, SEEK_CUR));
  char command[6000];
  snprintf(command, sizeof command, "exec %s other_reads %s %d", self, folder,
           open_copy(at("f2"), O_RDONLY));
  unsetenv("LD_PRELOAD");
  CHECK(system(command) == 0);
  FILE* pipe = popen(command, "r");
  CHECK(pipe != NULL && pclose(pipe) == 0);
  say("at %ld", (long)lseek(atoi(strrchr(command, ' ')), 0, SEEK_CUR));
}

// A descriptor that ends at exec, under another number that does not.
static void given_to_spawned(void) {
  stage_all();
  const int fd = open_copy(at("f3"), O_RDONLY | O_CLOEXEC);
  char* argv[] = {self, "other_reads", folder, "61", NULL};
  char* environment[] = {NULL};
  posix_spawn_file_actions_t actions;
  CHECK(posix_spawn_file_actions_init(&actions) == 0);
  CHECK(posix_spawn_file_actions_adddup2(&actions, fd, 61) == 0);
  pid_t pid;
  CHECK(posix_spawn(&pid, self, &actions, NULL, argv, environment) == 0);
  CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  say("at %ld, copy %d", (long)lseek(fd, 0, SEEK_CUR), is_copy(fd));
}

// Its handlers for fork() do not run.
static void forked_without_handlers(void) {
  stage_all();
  const int fd = open_copy(at("f3"), O_RDONLY);
  char byte;
  const pid_t pid = _Fork();
  if (pid == 0) _exit(is_copy(fd) || read(fd, &byte, 1) != 1);
  int status;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  say("status %d, at %ld, copy %d", status, (long)lseek(fd, 0, SEEK_CUR), is_copy(fd));
}

static const struct stage_case kCases[] = {
    {"read_while_forking", read_while_forking},
    {"read_while_spawning", read_while_spawning},
    {"read_while_asked_for_its_name", read_while_asked_for_its_name},
    {"stream_while_forking", stream_while_forking},
    {"stream_while_asked_for_its_name", stream_while_asked_for_its_name},
    {"stream_closed_while_asked_for_its_name", stream_closed_while_asked_for_its_name},
    {"numbers_reused_while_asked_for_their_names", numbers_reused_while_asked_for_their_names},
    {"lock_of_modified_file", lock_of_modified_file},
    {"lock_without_free_number", lock_without_free_number},
    {"kept_beyond_window", kept_beyond_window},
    {"opened_by_another_thread", opened_by_another_thread},
    {"mapped", mapped},
    {"given_away", given_away},
    {"offset_of_vfork_child", offset_of_vfork_child},
    {"given_to_spawned", given_to_spawned},
    {"forked_without_handlers", forked_without_handlers},
    {NULL, NULL}};

int main(int argc, char** argv) {
  self = argv[0];
  if (argc == 4) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    if (strcmp(argv[1], "other_holds") == 0) other_holds(argv[3]);
    if (strcmp(argv[1], "other_reads") == 0) other_reads(argv[3]);
    return 97;
  }
  return run_case(kCases, argc, argv);
}
