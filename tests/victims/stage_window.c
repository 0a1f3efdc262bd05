// Copies in memory never leave the window that they were given in: what once showed the difference.
// Each case prints the same without the library. The third argument of some is for a helper
// process.
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
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

// This program again, in a process without the library, as HELPER FOLDER WORD; its output is ours.
static pid_t start_other(const char* helper, const char* word) {
  char* argv[] = {self, (char*)helper, folder, (char*)word, NULL};
  char* environment[] = {NULL};
  pid_t pid;
  CHECK(posix_spawn(&pid, self, NULL, NULL, argv, environment) == 0);
  return pid;
}
static void run_other(const char* helper, const char* word) {
  const pid_t pid = start_other(helper, word);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
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

// --- another thread of credentials, another name space -------------------------------------------

static void say_opens(const char* what) {
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    begin_window();
    say_file(what, at(kNames[i]));
    end_window();
  }
}

static void hidden_by_mount(void) {
  stage_all();
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount(at("far"), at("sub"), NULL, MS_BIND, NULL) != 0) {
    say("no name space");
    return;
  }
  say_opens("hidden");
  // As raw calls do it, in the same name space.
  CHECK(syscall(SYS_mount, at("far"), at("deep/er"), NULL, MS_BIND, NULL) == 0);
  say_opens("hidden again");
}

static void hidden_by_another(void) {
  stage_all();
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
    say("no name space");
    return;
  }
  run_other("other_mounts", "");
  say_opens("hidden");
}
// What is open when its name is mounted over reads the file that it was opened as.
static void mounted_over_while_open(void) {
  stage_all();
  const int fd = open_copy(at("f2"), O_RDONLY);
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount(at("f0"), at("f2"), NULL, MS_BIND, NULL) != 0) {
    say("no name space");
    return;
  }
  SAY_RESULT(flock(fd, LOCK_SH));
  end_window();
  say("copy %d, digest %lx", is_copy(fd), digest_rest(fd));
}
static void other_mounts(void) {
  CHECK(mount(at("far"), at("sub"), NULL, MS_BIND, NULL) == 0);
  _exit(0);
}

// What is open stays open when the right to open it again is given up, within a window too.
static void rights_given_up_while_open(void) {
  if (chown(at("f2"), 1, 1) != 0 || chmod(at("f2"), 0600) != 0 || chown(at("f3"), 1, 1) != 0 ||
      chmod(at("f3"), 0600) != 0) {
    say("not root");
    return;
  }
  stage_all();
  const int first = open_copy(at("f2"), O_RDONLY), second = open_copy(at("f3"), O_RDONLY);
  CHECK(setegid(2) == 0 && seteuid(2) == 0);
  SAY_RESULT(flock(first, LOCK_SH));
  say_file("again", at("f2"));
  end_window();
  say("copies %d %d, digest %lx", is_copy(first), is_copy(second), digest_rest(second));
}

// The same by a system call of the program's own.
static void rights_given_up_by_system_call(void) {
  if (chown(at("f2"), 1, 1) != 0 || chmod(at("f2"), 0600) != 0) {
    say("not root");
    return;
  }
  stage_all();
  const int fd = open_copy(at("f2"), O_RDONLY);
  CHECK(syscall(SYS_setresuid, -1, 2, -1) == 0);
  SAY_RESULT(flock(fd, LOCK_SH));
  say("copy %d", is_copy(fd));
}

static void give_up(unsigned capability) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  CHECK(syscall(SYS_capget, &header, data) == 0);
  data[capability / 32].effective &= ~(1U << capability % 32);
  data[capability / 32].permitted &= ~(1U << capability % 32);
  CHECK(syscall(SYS_capset, &header, data) == 0);
}

static void group_given_up(void) {
  const gid_t group = 4321;
  // The effective user decides: as an ordinary user who is one of the group.
  if (setgroups(1, &group) != 0 || chown(at("sub"), 1, group) != 0 || chmod(at("sub"), 0710) != 0) {
    say("not root");
    return;
  }
  // The optimizer, which this process starts, is such a user too.
  CHECK(prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0);
  CHECK(prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0) == 0);
  give_up(CAP_DAC_OVERRIDE);
  give_up(CAP_DAC_READ_SEARCH);
  stage_all();
  say_file("before", at("sub/g0"));
  CHECK(setgroups(0, NULL) == 0);
  say_file("after", at("sub/g0"));
  SAY_RESULT(access(at("sub/g0"), R_OK));
  struct stat s;
  say_stat("stat", stat(at("sub/g0"), &s), &s);
}

static void capability_given_up(void) {
  if (chown(at("f2"), 1, 1) != 0 || chmod(at("f2"), 0600) != 0) {
    say("not root");
    return;
  }
  stage_all();
  say_file("before", at("f2"));
  give_up(CAP_DAC_OVERRIDE);
  give_up(CAP_DAC_READ_SEARCH);
  say_file("after", at("f2"));
}

// --- changes by others ---------------------------------------------------------------------------

static void other_writes(const char* word) {
  const int fd = open(at("f2"), O_WRONLY | O_TRUNC);
  CHECK(fd >= 0 && write(fd, word, strlen(word)) == (ssize_t)strlen(word));
  _exit(0);
}
static void other_replaces(const char* name) {
  const int fd = open(at("other"), O_WRONLY | O_CREAT, 0600);
  CHECK(fd >= 0 && write(fd, "replaced", 8) == 8 && rename(at("other"), at(name)) == 0);
  _exit(0);
}
static void say_text(const char* path) {
  char text[64] = "";
  const int fd = open(path, O_RDONLY);
  CHECK(fd >= 0 && read(fd, text, sizeof text - 1) >= 0 && close(fd) == 0);
  struct stat s;
  CHECK(stat(path, &s) == 0);
  say("%s, %ld bytes", text, (long)s.st_size);
}
static void changed_by_another(void) {
  stage_all();
  for (int round = 0; round < 50; ++round) {
    char word[32];
    snprintf(word, sizeof word, "round %d", round);
    run_other("other_writes", word);
    say_text(at("f2"));
    if (round % 10 == 9) order_again();
  }
}

static void copies_range(int from) {
  const int out = open(at("new"), O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(out >= 0);
  SAY_RESULT(copy_file_range(from, NULL, out, NULL, 5000, 0));
  off_t begin = 7, end = 9000;
  SAY_RESULT(copy_file_range(from, &begin, out, &end, 1 << 20, 0));
  SAY_RESULT(copy_file_range(from, NULL, out, NULL, 1 << 20, 0));
  say("source at %ld, result at %ld, %ld %ld", (long)lseek(from, 0, SEEK_CUR),
      (long)lseek(out, 0, SEEK_CUR), (long)begin, (long)end);
  CHECK(lseek(out, 0, SEEK_SET) == 0);
  say("result %lx", digest_rest(out));
  // Writing fails as it would have.
  SAY_RESULT(copy_file_range(from, &begin, from, NULL, 10, 0));
  SAY_RESULT(copy_file_range(from, NULL, out, NULL, 10, 1));
  const int elsewhere = memfd_create("elsewhere", 0);
  begin = 0;
  SAY_RESULT(copy_file_range(from, &begin, elsewhere, NULL, 10, 0));
}
// Differential, seed 205415: the original cannot be had by its name any more.
static void copied_after_replaced(void) {
  stage_all();
  begin_window();
  const int fd = open_copy(at("f3"), O_RDONLY);
  run_other("other_replaces", "f3");
  copies_range(fd);
  end_window();
}
// Seed 340: its folder has another name.
static void copied_after_folder_renamed(void) {
  stage_all();
  begin_window();
  const int fd = open_copy(at("sub/g0"), O_RDONLY);
  CHECK(rename(at("sub"), at("moved")) == 0);
  copies_range(fd);
  end_window();
}

// Between the lines the test stops or kills the optimizer.
static void optimizer_is_gone(void) {
  stage_all();
  char line[16];
  CHECK(write(1, "staged\n", 7) == 7 && read(0, line, sizeof line) > 0);
  run_other("other_writes", "changed since");
  say_text(at("f2"));
  say_opens("file");
}

// Calls that change what is no data of anybody's, between two marks that a tracer sees.
static void changes_elsewhere(void) {
  stage_all();
  char path[64] = "/tmp/sluice-elsewhere-XXXXXX";
  const int fd = mkstemp(path);
  CHECK(fd >= 0 && close(fd) == 0);
  CHECK(syscall(SYS_access, "begin", 0) != 0);
  for (int i = 0; i < 100; ++i) {
    CHECK(chmod(path, 0600) == 0);
    CHECK(rename(path, path) == 0 && utimensat(AT_FDCWD, path, NULL, 0) == 0);
    CHECK(truncate(path, i) == 0);
  }
  CHECK(unlink(path) == 0);
  CHECK(syscall(SYS_access, "end", 0) != 0);
}

static const struct stage_case kCases[] = {
    {"read_while_forking", read_while_forking},
    {"read_while_spawning", read_while_spawning},
    {"read_while_asked_for_its_name", read_while_asked_for_its_name},
    {"stream_while_forking", stream_while_forking},
    {"stream_while_asked_for_its_name", stream_while_asked_for_its_name},
    {"lock_of_modified_file", lock_of_modified_file},
    {"lock_without_free_number", lock_without_free_number},
    {"kept_beyond_window", kept_beyond_window},
    {"opened_by_another_thread", opened_by_another_thread},
    {"mapped", mapped},
    {"given_away", given_away},
    {"offset_of_vfork_child", offset_of_vfork_child},
    {"given_to_spawned", given_to_spawned},
    {"forked_without_handlers", forked_without_handlers},
    {"rights_given_up_while_open", rights_given_up_while_open},
    {"rights_given_up_by_system_call", rights_given_up_by_system_call},
    {"hidden_by_mount", hidden_by_mount},
    {"mounted_over_while_open", mounted_over_while_open},
    {"hidden_by_another", hidden_by_another},
    {"group_given_up", group_given_up},
    {"capability_given_up", capability_given_up},
    {"changed_by_another", changed_by_another},
    {"copied_after_replaced", copied_after_replaced},
    {"copied_after_folder_renamed", copied_after_folder_renamed},
    {"optimizer_is_gone", optimizer_is_gone},
    {"changes_elsewhere", changes_elsewhere},
    {NULL, NULL}};

int main(int argc, char** argv) {
  self = argv[0];
  if (argc == 4) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    if (strcmp(argv[1], "other_holds") == 0) other_holds(argv[3]);
    if (strcmp(argv[1], "other_reads") == 0) other_reads(argv[3]);
    if (strcmp(argv[1], "other_writes") == 0) other_writes(argv[3]);
    if (strcmp(argv[1], "other_mounts") == 0) other_mounts();
    if (strcmp(argv[1], "other_replaces") == 0) other_replaces(argv[3]);
    return 97;
  }
  return run_case(kCases, argc, argv);
}
