// Names of staged files: links, folders, attributes, access, and invalid arguments.
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "tests/victims/stage.h"

static const char* const kNames[] = {"f1",         "f2",   "f3",        "sub/g0",  "link",
                                     "dirlink/g0", "hard", "sub/../f2", "linklink"};
enum { kCount = sizeof kNames / sizeof *kNames };

static void staged(void) {
  begin_stage(kNames, kCount);
  for (int i = 0; i < kCount; ++i) wait_copy(at(kNames[i]));
}

static void say_x(int from, const char* name, int flags, unsigned mask) {
  struct statx x;
  memset(&x, 0x5a, sizeof x);
  if (statx(from, name, flags, mask, &x) != 0) {
    say("statx %x: %s", flags, strerror(errno));
    return;
  }
  say("statx %x %x: %x attributes %llx of %llx mode %o links %u size %llu ino %llu blksize %u "
      "mount %lu mtime %lld.%u",
      flags, mask, x.stx_mask, x.stx_attributes, x.stx_attributes_mask, x.stx_mode, x.stx_nlink,
      x.stx_size, x.stx_ino, x.stx_blksize, (unsigned long)x.stx_mnt_id, x.stx_mtime.tv_sec,
      x.stx_mtime.tv_nsec);
}

static void attributes(void) {
  staged();
  int (*old)(int, const char*, struct stat*) = dlsym(RTLD_DEFAULT, "__xstat");
  int (*old_link)(int, const char*, struct stat*) = dlsym(RTLD_DEFAULT, "__lxstat");
  const int base = open(folder, O_RDONLY | O_DIRECTORY);
  CHECK(old != NULL && old_link != NULL && base >= 0 && chdir(folder) == 0);
  for (int i = 0; i < kCount; ++i) {
    struct stat s;
    say("%s", kNames[i]);
    say_stat("stat", stat(at(kNames[i]), &s), &s);
    say_stat("lstat", lstat(at(kNames[i]), &s), &s);
    say_stat("__xstat", old(1, at(kNames[i]), &s), &s);
    say_stat("__lxstat", old_link(1, kNames[i], &s), &s);
    say_stat("fstatat", fstatat(base, kNames[i], &s, 0), &s);
    say_stat("fstatat link", fstatat(base, kNames[i], &s, AT_SYMLINK_NOFOLLOW), &s);
    say_stat("fstatat bad", fstatat(base, kNames[i], &s, 0x1000000), &s);
    say_x(base, kNames[i], 0, STATX_BASIC_STATS);
    say_x(AT_FDCWD, kNames[i], AT_SYMLINK_NOFOLLOW, STATX_SIZE);
    say_x(AT_FDCWD, kNames[i], AT_STATX_FORCE_SYNC, STATX_ALL);
    say_x(AT_FDCWD, kNames[i], AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_ALL);
    say_x(base, kNames[i], 0, 0x80000000);
    say_x(base, kNames[i], 0x1000000, STATX_BASIC_STATS);
    for (int mode = 0; mode < 8; ++mode) {
      say("access %d: %d %d %d", mode, access(kNames[i], mode), faccessat(base, kNames[i], mode, 0),
          faccessat(base, kNames[i], mode, AT_EACCESS | AT_SYMLINK_NOFOLLOW));
    }
    SAY_RESULT(access(kNames[i], 64));
    SAY_RESULT(faccessat(base, kNames[i], R_OK, 0x1000000));
    SAY_RESULT(euidaccess(kNames[i], R_OK));
    char text[256] = "";
    SAY_RESULT(getxattr(kNames[i], "user.colour", text, sizeof text));
    SAY_RESULT(readlink(kNames[i], text, sizeof text));
    struct statfs f;
    SAY_RESULT(statfs(kNames[i], &f));
    say("type %lx", (long)f.f_type);
  }
}

static void links(void) {
  staged();
  static const char* const all[] = {"link",  "linklink",      "dirlink/g0", "sub/../f2", "./f2",
                                    "hard",  "dirlink/../f2", "f2/",        "f2/.",      "sub",
                                    "link/", "//f2",          "f2/../f3",   "loop",      "dangling",
                                    "F2",    "sub//g0"};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    say_file(all[i], at(all[i]));
    const int fd = open(at(all[i]), O_RDONLY | O_NOFOLLOW);
    say("O_NOFOLLOW: %s", fd < 0 ? strerror(errno) : "open");
    if (fd >= 0) say("flags %x", fcntl(fd, F_GETFL));
    close(fd);
    struct stat s;
    say_stat("lstat", lstat(at(all[i]), &s), &s);
    say_stat("stat", stat(at(all[i]), &s), &s);
  }
}

static void relative(void) {
  staged();
  const int base = open(folder, O_RDONLY | O_DIRECTORY);
  const int path_only = open(at("sub"), O_PATH);
  const int file = open_copy(at("f2"), O_RDONLY);
  CHECK(base >= 0 && path_only >= 0);
  char byte[16];
  struct stat s;
#define OPEN_HERE(from, name)                                                 \
  do {                                                                        \
    const int fd = openat(from, name, O_RDONLY);                              \
    say("%s %s: %ld %s", #from, name, fd < 0 ? -1 : (long)read(fd, byte, 16), \
        fd < 0 ? strerror(errno) : "");                                       \
    if (fd >= 0) say("%lx", digest_of(byte, 16));                             \
    say_stat("fstatat", fstatat(from, name, &s, 0), &s);                      \
    close(fd);                                                                \
  } while (0)
  OPEN_HERE(base, "f2");
  OPEN_HERE(base, "sub/../f3");
  OPEN_HERE(path_only, "g0");
  OPEN_HERE(path_only, "../f2");
  OPEN_HERE(file, "f3");
  OPEN_HERE(-1, "f3");
  OPEN_HERE(12345, "f3");
  OPEN_HERE(AT_FDCWD, "f3");
  CHECK(chdir(folder) == 0);
  OPEN_HERE(AT_FDCWD, "f3");
  OPEN_HERE(AT_FDCWD, "sub/g0");
  CHECK(fchdir(path_only) == 0);
  OPEN_HERE(AT_FDCWD, "g0");
  OPEN_HERE(AT_FDCWD, "f3");
  CHECK(chdir(at("dirlink")) == 0);
  OPEN_HERE(AT_FDCWD, "g0");
  OPEN_HERE(AT_FDCWD, "../f3");
}

// The same path in another root is another file.
static void rooted(void) {
  staged();
  if (geteuid() != 0) return;
  const int outside = open(at("f2"), O_RDONLY);
  if (chroot(at("jail")) != 0) {
    say("chroot: %s", strerror(errno));
    return;
  }
  say_file("f2", at("f2"));
  say_file("f3", at("f3"));
  struct stat s;
  say_stat("stat", stat(at("f3"), &s), &s);
  say("opened before: %lx", digest_rest(outside));
}

static void flags(void) {
  staged();
  static const int all[] = {O_RDONLY,
                            O_CLOEXEC,
                            O_NOCTTY,
                            O_NONBLOCK,
                            O_SYNC,
                            O_DSYNC,
                            O_NOATIME,
                            O_CREAT,
                            O_CREAT | O_EXCL,
                            O_EXCL,
                            O_PATH,
                            O_PATH | O_NOFOLLOW,
                            O_DIRECTORY,
                            O_APPEND,
                            O_RDWR,
                            O_WRONLY,
                            O_RDWR | O_APPEND,
                            O_ACCMODE,
                            O_ASYNC,
                            O_LARGEFILE,
                            O_TMPFILE | O_RDWR,
                            0x40000000};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    const int fd = open(at("f2"), all[i], 0600);
    say("%x: %s", all[i], fd < 0 ? strerror(errno) : "open");
    if (fd < 0) continue;
    char byte;
    say("flags %x marks %x", fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
    SAY_RESULT(read(fd, &byte, 1));
    SAY_RESULT(write(fd, &byte, 0));
    struct stat s;
    say_stat("fstat", fstat(fd, &s), &s);
    close(fd);
  }
}

static void bad(void) {
  staged();
  char* page = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED && mprotect(page + PAGE, PAGE, PROT_NONE) == 0);
  const char* const nowhere = (const char*)8;
  SAY_RESULT(open(nowhere, O_RDONLY));
  SAY_RESULT(openat(AT_FDCWD, page + PAGE, O_RDONLY));
  struct stat s;
  // Beginnings of names that end where nothing can be read any more.
  static const char* const cut[] = {
      "/",       "/p",       "/proc/self/f", "/proc/self/fd/", "/proc/self/fd/1",
      "/dev/fd", "/dev/fd/", "f2",           "/tmp",           "1"};
  const int copy = open_copy(at("f2"), O_RDONLY);
  for (size_t i = 0; i < sizeof cut / sizeof *cut; ++i) {
    char* text = page + PAGE - strlen(cut[i]);
    memcpy(text, cut[i], strlen(cut[i]));
    SAY_RESULT(open(text, O_RDONLY));
    SAY_RESULT(stat(text, &s));
    SAY_RESULT(access(text, R_OK));
    SAY_RESULT(readlink(text, (char*)&s, sizeof s));
    SAY_RESULT(rename(text, text));
  }
  // A name that ends with the page.
  char* text = page + PAGE - strlen(at("f2")) - 1;
  strcpy(text, at("f2"));
  say_file("at the end of a page", text);
  const char* const f2 = at("f2");
  struct stat* const bad_stat = (struct stat*)(page + PAGE);
  SAY_RESULT(fstat(copy, bad_stat));
  SAY_RESULT(fstat(copy, (struct stat*)(page + PAGE - 8)));
  SAY_RESULT(fstat(copy, (struct stat*)(page + 2 * PAGE - 8)));
  SAY_RESULT(stat(f2, bad_stat));
  SAY_RESULT(stat(f2, (struct stat*)(page + PAGE - 100)));
  SAY_RESULT(statx(AT_FDCWD, f2, 0, STATX_BASIC_STATS, (struct statx*)bad_stat));
  SAY_RESULT(statx(copy, "", AT_EMPTY_PATH, STATX_BASIC_STATS, (struct statx*)(page + PAGE - 60)));
  struct stat* volatile no_stat = NULL;
  const char* volatile no_name = NULL;
  SAY_RESULT(fstat(copy, no_stat));
  SAY_RESULT(open(no_name, O_RDONLY));
  SAY_RESULT(statx(copy, no_name, AT_EMPTY_PATH, STATX_BASIC_STATS, (struct statx*)page));
  SAY_RESULT(read(copy, page + PAGE, 100));
  SAY_RESULT(pread(copy, page + PAGE - 10, 10, 0));
  CHECK(mprotect(page + 2 * PAGE, PAGE, PROT_READ) == 0);
  SAY_RESULT(fstat(copy, (struct stat*)(page + 2 * PAGE)));
  SAY_RESULT(stat(f2, (struct stat*)(page + 2 * PAGE)));
  SAY_RESULT(open("", O_RDONLY));
  SAY_RESULT(stat("", &s));
  SAY_RESULT(fstatat(copy, "", &s, 0));
  SAY_RESULT(fstatat(AT_FDCWD, "", &s, AT_EMPTY_PATH));
  static char lengthy[6000];
  memset(lengthy, 'x', sizeof lengthy - 1);
  SAY_RESULT(open(lengthy, O_RDONLY));
  lengthy[0] = '/';
  SAY_RESULT(stat(lengthy, &s));
  for (size_t length = 300; length <= 4200; length += 3900 / 4) {
    // The same file by a name of that length.
    char* end = stpcpy(lengthy, folder);
    while ((size_t)(end - lengthy) < length) end = stpcpy(end, "/./.");
    strcpy(end, "/f2");
    say_file("by a long name", lengthy);
  }
  SAY_RESULT(close(-1));
  SAY_RESULT(fstat(-1, &s));
  SAY_RESULT(fstat(1 << 30, &s));
  SAY_RESULT(fopen(f2, "q") == NULL ? -1 : 0);
  SAY_RESULT(fopen(f2, "") == NULL ? -1 : 0);
  SAY_RESULT(fopen(at("missing"), "r") == NULL ? -1 : 0);
}

// Opens until no descriptor is left, and continues.
static void exhausted(void) {
  staged();
  int last = -1, fd;
  for (int i = 0; i < 2000 && (fd = open(at("f2"), O_RDONLY)) >= 0; ++i) last = fd;
  say("the last is %d: %s", last, strerror(errno));
  SAY_RESULT(fopen(at("f2"), "r") == NULL ? -1 : 0);
  struct stat s;
  say_stat("stat", stat(at("f2"), &s), &s);
  closefrom(3);
  SAY_RESULT(fstat(last, &s));
  say_file("f2", at("f2"));
}

static const struct stage_case kCases[] = {
    {"attributes", attributes}, {"links", links}, {"relative", relative},   {"rooted", rooted},
    {"flags", flags},           {"bad", bad},     {"exhausted", exhausted}, {NULL, NULL}};

int main(int argc, char** argv) { return run_case(kCases, argc, argv); }
