// Which file of the tree it is that a name or a descriptor leads to.
#include <sys/sysmacros.h>
#include <time.h>

#include "tests/differential/executor.h"

static struct identity identity_of(const struct statx* about) {
  struct identity found = {.device = makedev(about->stx_dev_major, about->stx_dev_minor),
                           .inode = about->stx_ino};
  if ((about->stx_mask & STATX_BTIME) != 0) {
    found.born_s = about->stx_btime.tv_sec;
    found.born_ns = about->stx_btime.tv_nsec;
  }
  return found;
}

static bool is_numbered(const struct identity* file, uint64_t device, uint64_t inode) {
  return file->device == device && file->inode == inode;
}

void remember_files(void) {
  struct timespec newest = {0, 0}, now;
  for (int i = 0; i < g_program.file_count; ++i) {
    char name[2048];
    struct statx about;
    snprintf(name, sizeof name, "%s/%s", g_tree, g_program.files[i]);
    if (syscall(SYS_statx, AT_FDCWD, name, 0, STATX_BASIC_STATS | STATX_BTIME, &about) != 0)
      continue;
    const struct identity found = identity_of(&about);
    g_shared->identity[i] = found;
    if (found.born_s > newest.tv_sec ||
        (found.born_s == newest.tv_sec && found.born_ns > newest.tv_nsec)) {
      newest.tv_sec = found.born_s;
      newest.tv_nsec = found.born_ns;
    }
  }
  const time_t deadline = time(NULL) + 10;
  do {
    if (time(NULL) > deadline) broken("a file of the tree is born later than now");
    syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &now);
  } while (now.tv_sec < newest.tv_sec ||
           (now.tv_sec == newest.tv_sec && now.tv_nsec <= newest.tv_nsec));
}

const char* which_file(const struct stat* s, int folder, const char* name, int flags) {
  const struct identity* known = g_shared->identity;
  int first = 0;
  while (first < g_program.file_count && !is_numbered(&known[first], s->st_dev, s->st_ino)) ++first;
  if (first < g_program.file_count) {
    struct statx about;
    if (statx(folder, name, flags, STATX_BASIC_STATS | STATX_BTIME, &about) != 0)
      return "what statx does not find";
    const struct identity found = identity_of(&about);
    if (!is_numbered(&found, s->st_dev, s->st_ino)) return "another than by statx";
    for (int i = first; i < g_program.file_count; ++i) {
      if (is_numbered(&known[i], found.device, found.inode) && known[i].born_s == found.born_s &&
          known[i].born_ns == found.born_ns)
        return g_program.files[i];
    }
    return "new";
  }
  struct stat root;
  if (syscall(SYS_newfstatat, AT_FDCWD, g_tree, &root, 0) == 0 && root.st_dev != s->st_dev)
    return "elsewhere";
  return "new";
}
