// Steps that change what names mean and what files hold, by name.
#include <dirent.h>

#include "tests/differential/executor.h"

static void rename_it(const struct step* step) { say_result(rename(path(step, 1), path(step, 2))); }
static void exchange(const struct step* step) {
  say_result(renameat2(AT_FDCWD, path(step, 1), AT_FDCWD, path(step, 2), RENAME_EXCHANGE));
}
static void unlink_it(const struct step* step) { say_result(unlink(path(step, 1))); }
static void link_it(const struct step* step) { say_result(link(path(step, 1), path(step, 2))); }
static void symlink_it(const struct step* step) {
  say_result(symlink(path(step, 1), path(step, 2)));
}
static void truncate_it(const struct step* step) {
  say_result(truncate(path(step, 1), number(step, 2)));
}
static void chmod_it(const struct step* step) {
  say_result(chmod(path(step, 1), (mode_t)number(step, 2)));
}
static void chown_it(const struct step* step) {
  say_result(chown(path(step, 1), (uid_t)number(step, 2), (gid_t)number(step, 2)));
}
static void set_times(const struct step* step) {
  const struct timespec times[2] = {{1500000000, 0}, {1500000000 + number(step, 2), 7}};
  say_result(utimensat(AT_FDCWD, path(step, 1), times, 0));
}
static void make_folder(const struct step* step) { say_result(mkdir(path(step, 1), 0755)); }
static void remove_folder(const struct step* step) { say_result(rmdir(path(step, 1))); }
static void change_folder(const struct step* step) { say_result(chdir(path(step, 1))); }

// In place, as many programs do: opened, written, closed.
static void write_file(const struct step* step) {
  const int fd = open(path(step, 1), O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    say_result(-1);
    return;
  }
  const size_t size = (size_t)number(step, 2);
  memset(g_buffer, (int)number(step, 4), size < kBuffer ? size : kBuffer);
  say_result(pwrite(fd, g_buffer, size < kBuffer ? size : kBuffer, number(step, 3)));
  close(fd);
}
// As careful programs do: another file takes the name.
static void replace_file(const struct step* step) {
  char other[2100];
  snprintf(other, sizeof other, "%s.part", path(step, 1));
  const int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    say_result(-1);
    return;
  }
  memset(g_buffer, (int)number(step, 3), (size_t)number(step, 2) % kBuffer);
  if (write(fd, g_buffer, (size_t)number(step, 2) % kBuffer) < 0) say_result(-1);
  close(fd);
  say_result(rename(other, path(step, 1)));
}
static int by_name(const struct dirent** one, const struct dirent** other) {
  return strcmp((*one)->d_name, (*other)->d_name);
}
static void list(const struct step* step) {
  struct dirent** found;
  const int count = scandir(path(step, 1), &found, NULL, by_name);
  if (count < 0) {
    say_result(-1);
    return;
  }
  uint64_t value = 1;
  for (int i = 0; i < count; ++i) {
    value = digest(value, found[i]->d_name, strlen(found[i]->d_name) + 1);
    free(found[i]);
  }
  free(found);
  say("%d %016lx", count, value);
}

const struct operation kPathOperations[] = {{"rename", rename_it},
                                            {"exchange", exchange},
                                            {"unlink", unlink_it},
                                            {"link", link_it},
                                            {"symlink", symlink_it},
                                            {"truncate", truncate_it},
                                            {"chmod", chmod_it},
                                            {"chown", chown_it},
                                            {"utimens", set_times},
                                            {"mkdir", make_folder},
                                            {"rmdir", remove_folder},
                                            {"chdir", change_folder},
                                            {"writefile", write_file},
                                            {"replacefile", replace_file},
                                            {"list", list},
                                            {NULL, NULL}};
