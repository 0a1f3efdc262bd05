// Copies in memory follow what changes outside the program's own reads: rights, name spaces, other
// writers, and an optimizer that stops. Each case prints the same without the library. The third
// argument of some is for a helper process.
#include <grp.h>
#include <linux/capability.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/victims/stage.h"

static char* self;

static const char* const kNames[] = {"f0", "f1", "f2", "f3", "sub/g0", "deep/er/h0"};

static void stage_all(void) {
  begin_stage(kNames, sizeof kNames / sizeof *kNames);
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) wait_copy(at(kNames[i]));
}

// This program again, in a process without the library, as HELPER FOLDER WORD; its output is ours.
static void run_other(const char* helper, const char* word) {
  char* argv[] = {self, (char*)helper, folder, (char*)word, NULL};
  char* environment[] = {NULL};
  pid_t pid;
  CHECK(posix_spawn(&pid, self, NULL, NULL, argv, environment) == 0);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
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

// Calls that change no data of a job, between two marks that a tracer sees.
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
    if (strcmp(argv[1], "other_writes") == 0) other_writes(argv[3]);
    if (strcmp(argv[1], "other_mounts") == 0) other_mounts();
    if (strcmp(argv[1], "other_replaces") == 0) other_replaces(argv[3]);
    return 97;
  }
  return run_case(kCases, argc, argv);
}
