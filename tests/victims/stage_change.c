// Files that change while they are staged: the next open sees what is there. Each change is made
// by this process, or by another one without the library (the third argument is `other`).
#include <spawn.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <utime.h>

#include "tests/victims/stage.h"

static char* self;
static bool by_other;

static const char* const kNames[] = {"f1",         "f2",   "f3",         "sub/g0",  "link",
                                     "dirlink/g0", "hard", "deep/er/h0", "farlink", "mark"};
enum { kCount = sizeof kNames / sizeof *kNames };

static void put(const char* path, const char* text, int flags) {
  const int fd = open(path, O_WRONLY | flags, 0644);
  CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static void rewrite(void) { put(at("f2"), "new words", O_TRUNC); }
static void extend(void) { put(at("f2"), "and more", O_APPEND); }
static void overwrite(void) { put(at("f2"), "AB", 0); }
static void rewrite_stream(void) {
  FILE* file = fopen(at("f2"), "r+");
  CHECK(file != NULL && fputs("stream", file) >= 0 && fclose(file) == 0);
}
static void rename_over(void) {
  put(at("f2.new"), "another file", O_CREAT | O_TRUNC);
  CHECK(rename(at("f2.new"), at("f2")) == 0);
}
static void exchange(void) { CHECK(renameat2(AT_FDCWD, at("f2"), AT_FDCWD, at("f3"), 2) == 0); }
static void remove_file(void) { CHECK(unlink(at("f2")) == 0); }
static void recreate(void) {
  CHECK(unlink(at("f2")) == 0);
  put(at("f2"), "born again", O_CREAT | O_EXCL);
}
static void shorten(void) { CHECK(truncate(at("f2"), 3) == 0); }
static void change_mode(void) { CHECK(chmod(at("f2"), 0600) == 0); }
static void change_mode_fd(void) {
  const int fd = open(at("f2"), O_RDONLY);
  CHECK(fd >= 0 && fchmod(fd, 0640) == 0 && close(fd) == 0);
}
static void change_times(void) {
  const struct timespec times[2] = {{1000, 5}, {2000, 7}};
  CHECK(utimensat(AT_FDCWD, at("f2"), times, 0) == 0);
}
static void change_old_times(void) {
  const struct utimbuf times = {10, 20};
  CHECK(utime(at("f2"), &times) == 0);
}
static void change_times_fd(void) {
  const struct timespec times[2] = {{1000, 5}, {3000, 7}};
  const int fd = open(at("f2"), O_RDONLY);
  CHECK(fd >= 0 && futimens(fd, times) == 0 && close(fd) == 0);
}
static void move_folder(void) {
  CHECK(rename(at("sub"), at("sub.old")) == 0 && mkdir(at("sub"), 0755) == 0);
  put(at("sub/g0"), "of the new folder", O_CREAT);
}
static void move_above(void) {
  CHECK(rename(at("deep"), at("deep.old")) == 0 && mkdir(at("deep"), 0755) == 0 &&
        mkdir(at("deep/er"), 0755) == 0);
  put(at("deep/er/h0"), "of the new folders", O_CREAT);
}
static void move_away(void) { CHECK(rename(at("deep"), at("deep.old")) == 0); }
static void switch_link(void) {
  CHECK(symlink("f1", at("link.new")) == 0 && rename(at("link.new"), at("link")) == 0);
}
static void switch_folder(void) {
  CHECK(mkdir(at("sub2"), 0755) == 0 && symlink("sub2", at("dirlink.new")) == 0);
  put(at("sub2/g0"), "behind another link", O_CREAT);
  CHECK(rename(at("dirlink.new"), at("dirlink")) == 0);
}
static void through_hard(void) { put(at("hard"), "by another name", O_TRUNC); }
static void through_link(void) { put(at("link"), "by a link", O_TRUNC); }
static void behind_link(void) { put(at("far/target"), "far away", O_TRUNC); }
static void replace_target(void) {
  put(at("far/new"), "another target", O_CREAT);
  CHECK(rename(at("far/new"), at("far/target")) == 0);
}
static void move_target(void) {
  CHECK(rename(at("far"), at("far.old")) == 0 && mkdir(at("far"), 0755) == 0);
  put(at("far/target"), "in another folder", O_CREAT);
}
static void link_count(void) { CHECK(link(at("f2"), at("f2.link")) == 0); }
static void link_lost(void) { CHECK(unlink(at("hard")) == 0); }
static void through_map(void) {
  const int fd = open(at("f2"), O_RDWR);
  char* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(fd >= 0 && memory != MAP_FAILED);
  memory[1] = '!';
  CHECK(msync(memory, 4096, MS_SYNC) == 0 && munmap(memory, 4096) == 0 && close(fd) == 0);
}
static void attribute(void) {
  if (setxattr(at("f2"), "user.shape", "round", 5, 0) != 0) CHECK(errno == ENOTSUP);
}
static void to_folder(void) { CHECK(unlink(at("f2")) == 0 && mkdir(at("f2"), 0755) == 0); }

// What is there after the change, changed once more.
static void change_again(void) {
  static const char* const all[] = {"f2", "sub/g0", "dirlink/g0", "deep/er/h0", "link", "farlink"};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    struct stat s;
    if (stat(at(all[i]), &s) == 0 && S_ISREG(s.st_mode)) put(at(all[i]), at(all[i]), O_TRUNC);
  }
}

static const struct {
  const char* name;
  void (*run)(void);
} kChanges[] = {{"rewrite", rewrite},
                {"extend", extend},
                {"overwrite", overwrite},
                {"rewrite_stream", rewrite_stream},
                {"rename_over", rename_over},
                {"exchange", exchange},
                {"remove", remove_file},
                {"recreate", recreate},
                {"shorten", shorten},
                {"change_mode", change_mode},
                {"change_mode_fd", change_mode_fd},
                {"change_times", change_times},
                {"change_old_times", change_old_times},
                {"change_times_fd", change_times_fd},
                {"move_folder", move_folder},
                {"move_above", move_above},
                {"move_away", move_away},
                {"switch_link", switch_link},
                {"switch_folder", switch_folder},
                {"through_hard", through_hard},
                {"through_link", through_link},
                {"behind_link", behind_link},
                {"replace_target", replace_target},
                {"move_target", move_target},
                {"link_count", link_count},
                {"link_lost", link_lost},
                {"through_map", through_map},
                {"attribute", attribute},
                {"to_folder", to_folder},
                {"change_again", change_again}};
enum { kChangeCount = sizeof kChanges / sizeof *kChanges };

static void make(int change) {
  if (!by_other) {
    kChanges[change].run();
    return;
  }
  wait_copy(
      at("mark"));  // that it is removed shows something: on a busy machine it may not be back yet
  char* argv[] = {self, "--make", folder, (char*)kChanges[change].name, NULL};
  char* environment[] = {NULL};
  pid_t pid;
  CHECK(posix_spawn(&pid, self, NULL, NULL, argv, environment) == 0);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  if (!with_sluice()) return;
  // Notifications of changes come in their order: the mark is the last. Until it is seen, which is
  // a matter of milliseconds and much less than SLUICE_STALE, a copy may still be opened.
  const time_t deadline = time(NULL) + 10;
  for (bool seen = false; !seen; usleep(100)) {
    const int fd = open(at("mark"), O_RDONLY);
    CHECK(fd >= 0 && time(NULL) < deadline);
    seen = !is_copy(fd);
    close(fd);
  }
}

static void say_all(const char* when) {
  say("%s", when);
  for (int i = 0; i < kCount; ++i) {
    say_file(kNames[i], at(kNames[i]));
    struct stat s;
    if (stat(at(kNames[i]), &s) != 0) {
      say("stat: %s", strerror(errno));
      continue;
    }
    say("stat: size %ld mode %o links %lu at 2033 or before %d", (long)s.st_size, s.st_mode,
        (unsigned long)s.st_nlink, s.st_mtim.tv_sec < 5000 ? (int)s.st_mtim.tv_sec : -1);
    say("lstat: %d", lstat(at(kNames[i]), &s) == 0 ? (int)s.st_mode : -1);
  }
}

// Changes one thing, looks, lets what is there be staged again and changes it once more.
static void change(int which) {
  begin_stage(kNames, kCount);
  for (int i = 0; i < kCount; ++i) wait_copy(at(kNames[i]));
  make(which);
  say_all("changed");
  if (with_sluice()) {
    const time_t deadline = time(NULL) + 2;  // what is not is read from where it is
    int waiting = -1;
    for (int i = 0; i < kCount && time(NULL) < deadline;) {
      if (waiting != i) order_again();
      waiting = i;
      struct stat s;
      const int fd = open(at(kNames[i]), O_RDONLY);
      // What this process wrote itself it does not take from the stage any more.
      const bool good =
          fd < 0 || is_copy(fd) || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || !by_other;
      if (fd >= 0) close(fd);
      if (good) ++i;
      usleep(good ? 0 : 5000);
    }
  }
  say_all("staged again");
  make(kChangeCount - 1);
  say_all("changed again");
}

int main(int argc, char** argv) {
  self = argv[0];
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (int i = 0; i < kChangeCount; ++i) say("%s", kChanges[i].name);
    return 0;
  }
  CHECK(argc == 4);
  snprintf(folder, sizeof folder, "%s", argv[2]);
  const bool making = strcmp(argv[1], "--make") == 0;
  for (int i = 0; i < kChangeCount; ++i) {
    if (strcmp(kChanges[i].name, making ? argv[3] : argv[1]) != 0) continue;
    by_other = !making && strcmp(argv[3], "other") == 0;
    if (making) {
      kChanges[i].run();
      put(at("mark"), "mark", O_TRUNC);
    } else {
      change(i);
    }
    return 0;
  }
  return 97;
}
