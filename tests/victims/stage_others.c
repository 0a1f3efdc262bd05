// What another process of the job changes without a report of inotify's: what is opened next is as
// it is then.
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "tests/victims/stage.h"

extern char** environ;
static char* self;

static const char* const kNames[] = {"f0", "f1", "f2", "f3", "sub/g0", "deep/er/h0"};
static const char* const kOthers[] = {"sub/g0", "mark"};
enum { kRounds = 20 };

static void stage_every(void) {
  begin_stage(kNames, sizeof kNames / sizeof *kNames);
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) wait_copy(at(kNames[i]));
}

// --- a shared mapping is written (differential, seed 4782) ---------------------------------------

// The process that maps: a line read is a store to be made, a line written says that it is.

static void write_by_lines(char* memory) {
  char line[16];
  for (unsigned char turn = 1; read(0, line, 1) == 1; ++turn) {
    memory[turn] = (char)~memory[turn];
    CHECK(write(1, "\n", 1) == 1);
  }
}

static int map_and_write(const char* how) {
  const int fd = open(at("f2"), O_RDWR);
  CHECK(fd >= 0);
  const bool before = strcmp(how, "before") == 0;
  const bool alone = strcmp(how, "alone") == 0;  // uses no copies itself
  if (!before && !alone) begin_stage(kOthers, 2);
  char* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(memory != MAP_FAILED && close(fd) == 0);
  if (before) begin_stage(kOthers, 2);
  CHECK(write(1, "\n", 1) == 1);
  if (strcmp(how, "child") != 0) {
    write_by_lines(memory);
    return 0;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    write_by_lines(memory);
    _exit(0);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  return 0;
}

// --- the process that reads ----------------------------------------------------------------------

static int to_other, from_other;
static pid_t other;

static void wait_other(void) {
  char line[1];
  CHECK(read(from_other, line, 1) == 1);
}

static void start_other(const char* how) {
  int in[2], out[2];
  CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
  char* argv[] = {self, "--map", folder, (char*)how, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  CHECK(posix_spawn(&other, self, &actions, NULL, argv, environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  to_other = in[1];
  from_other = out[0];
  wait_other();
}

static void read_after_each_store(void) {
  for (int turn = 0; turn < kRounds; ++turn) {
    CHECK(write(to_other, "\n", 1) == 1);
    wait_other();
    say_file("f2", at("f2"));
    if (turn % 4 == 3) order_again();
  }
  close(to_other);
  int status;
  CHECK(waitpid(other, &status, 0) == other && status == 0);
  order_again();
  wait_copy(at("f2"));
  say_file("f2", at("f2"));
}

static void wait_all(void) {
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    if (strcmp(kNames[i], "f2") != 0) wait_copy(at(kNames[i]));
  }
}

static void mapped_after_staged(void) {
  stage_every();
  start_other("after");
  read_after_each_store();
}
static void mapped_by_process_without_samples(void) {
  stage_every();
  start_other("alone");
  read_after_each_store();
}
static void mapped_by_child(void) {
  stage_every();
  start_other("child");
  read_after_each_store();
}
static void mapped_before_staged(void) {
  start_other("before");
  begin_stage(kNames, sizeof kNames / sizeof *kNames);
  wait_all();
  read_after_each_store();
}

// --- something is mounted over staged files ------------------------------------------------------

static bool own_mounts(void) {
  if (unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
    return true;
  say("no name space");
  return false;
}
static void say_opens(const char* what) {
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) say_file(what, at(kNames[i]));
}

// Another process of the job mounts over a folder, and over a file, in the optimizer's name space.
static void mounted_over_by_child(void) {
  if (!own_mounts()) return;
  stage_every();
  const pid_t pid = fork();
  if (pid == 0) {
    CHECK(mount(at("far"), at("sub"), NULL, MS_BIND, NULL) == 0);
    CHECK(mount(at("f0"), at("f2"), NULL, MS_BIND, NULL) == 0);
    _exit(0);
  }
  int status;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
  say_opens("hidden");
}

// A process that is executed, which has the library and declares no samples.
static void run_other(const char* what) {
  pid_t pid;
  char* argv[] = {self, (char*)what, folder, NULL};
  int status;
  CHECK(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}
static int mount_over(void) {
  CHECK(mount(at("f0"), at("f2"), NULL, MS_BIND, NULL) == 0);
  return 0;
}
// It gives a file a name in a folder that the optimizer does not watch, and changes it by that
// name.
static int link_and_write(void) {
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    char name[32];
    snprintf(name, sizeof name, "far/linked%zu", i);
    CHECK(link(at(kNames[i]), at(name)) == 0);
    const int fd = open(at(name), O_WRONLY);
    CHECK(fd >= 0 && pwrite(fd, "changed", 7, 3) == 7 && close(fd) == 0);
  }
  return 0;
}
static void linked_by_process_without_samples(void) {
  stage_every();
  run_other("--link");
  say_opens("linked");
}

// The same again and again, each seen at once.
static void mounted_over_repeatedly(void) {
  if (!own_mounts()) return;
  stage_every();
  int to_child[2], from_child[2];
  CHECK(pipe(to_child) == 0 && pipe(from_child) == 0);
  const pid_t pid = fork();
  char byte = 0;
  if (pid == 0) {
    close(to_child[1]);
    for (int turn = 0; read(to_child[0], &byte, 1) == 1; ++turn) {
      if (turn % 2 == 0) CHECK(mount(at("f0"), at("f2"), NULL, MS_BIND, NULL) == 0);
      // Lazily: the optimizer may be reading what lies there.
      if (turn % 2 == 1) CHECK(umount2(at("f2"), MNT_DETACH) == 0);
      CHECK(write(from_child[1], &byte, 1) == 1);
    }
    _exit(0);
  }
  CHECK(pid > 0);
  close(from_child[1]);
  for (int turn = 0; turn < 60; ++turn) {
    CHECK(write(to_child[1], &byte, 1) == 1 && read(from_child[0], &byte, 1) == 1);
    begin_window();
    say_file("f2", at("f2"));
    end_window();
    order_again();
  }
  close(to_child[1]);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

// The optimizer is stopped for a while when it should deal with that.
static void mounted_over_while_late(void) {
  if (!own_mounts()) return;
  stage_every();
  char line[16];
  CHECK(write(1, "staged\n", 7) == 7 && read(0, line, sizeof line) > 0);
  const pid_t pid = fork();
  if (pid == 0) {
    CHECK(mount(at("f0"), at("f2"), NULL, MS_BIND, NULL) == 0);
    _exit(0);
  }
  int status;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
  say_opens("hidden");
}

static void mounted_over_by_process_without_samples(void) {
  if (!own_mounts()) return;
  stage_every();
  char line[16];
  CHECK(write(1, "staged\n", 7) == 7 && read(0, line, sizeof line) > 0);
  run_other("--mount");
  say_opens("hidden");
}

int main(int argc, char** argv) {
  self = argv[0];
  static const struct stage_case kCases[] = {
      {"mapped_after_staged", mapped_after_staged},
      {"mapped_by_child", mapped_by_child},
      {"mapped_before_staged", mapped_before_staged},
      {"mounted_over_by_child", mounted_over_by_child},
      {"mounted_over_repeatedly", mounted_over_repeatedly},
      {"mounted_over_while_late", mounted_over_while_late},
      {"mapped_by_process_without_samples", mapped_by_process_without_samples},
      {"linked_by_process_without_samples", linked_by_process_without_samples},
      {"mounted_over_by_process_without_samples", mounted_over_by_process_without_samples},
      {NULL, NULL}};
  if (argc == 4 && strcmp(argv[1], "--map") == 0) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    return map_and_write(argv[3]);
  }
  if (argc == 3 && (strcmp(argv[1], "--mount") == 0 || strcmp(argv[1], "--link") == 0)) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    return strcmp(argv[1], "--mount") == 0 ? mount_over() : link_and_write();
  }
  return run_case(kCases, argc, argv);
}
