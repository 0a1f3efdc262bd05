#include "preload/data/datasets.h"

#include <fcntl.h>
#include <fnmatch.h>

#include <cstdio>
#include <cstring>

#include "preload/base/own_stack.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/data/left_alone.h"
#include "preload/data/slow_mounts.h"

namespace sluice::preload {
namespace {

// The beginning of LMDB's pages 0 and 1 (mdb.c: MDB_page's header, MDB_meta). The page size is
// stored in the free list's `pad`.
struct LmdbTree {
  uint32_t pad;
  uint16_t flags, depth;
  uint64_t branches, leaves, overflows, entries, root;
};
struct LmdbMeta {
  char header[16];
  uint32_t magic, version;
  uint64_t address, map_size;
  LmdbTree free_list, main;
  uint64_t last_page, transaction;
};
static_assert(sizeof(LmdbMeta) == 152);

constexpr uint32_t kLmdbMagic = 0xBEEFC0DE;
constexpr uint32_t kMaxLmdbPage = 64 << 10;
constexpr uint32_t kMinLmdbPage = 256;

const char* patterns() {
  const char* text = g_settings.text[static_cast<size_t>(protocol::Option::kDataset)];
  return text != nullptr ? text : "";
}

bool covers(const char* pattern, const char* path) {
  size_t length = strlen(pattern);
  while (length > 1 && pattern[length - 1] == '/') --length;
  if (strncmp(pattern, path, length) == 0 && (path[length] == '\0' || path[length] == '/')) {
    return true;
  }
  return fnmatch(pattern, path, 0) == 0;
}

// Folders in `pattern` may be symbolic links: resolves the part before any wildcard to the kernel's
// name, as open files are named. False if there is no such part, or the name is the same.
bool resolve(const char* pattern, char* out, size_t size) {
  size_t fixed = strcspn(pattern, "*?[\\");
  if (pattern[fixed] != '\0') {
    while (fixed > 0 && pattern[fixed - 1] != '/') --fixed;
  }
  char folder[2048];
  if (fixed == 0 || fixed >= sizeof folder) return false;
  memcpy(folder, pattern, fixed);
  folder[fixed] = '\0';
  const long fd = sys::call(SYS_openat, AT_FDCWD, sys::word(folder), O_PATH | O_CLOEXEC);
  if (sys::failed(fd)) return false;
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
  const long length =
      sys::call(SYS_readlink, sys::word(link), sys::word(out), static_cast<long>(size - 1));
  sys::close(static_cast<int>(fd));
  if (length <= 0) return false;
  const char* slash = pattern[fixed] != '\0' && length > 1 ? "/" : "";
  const int more =
      snprintf(out + length, size - static_cast<size_t>(length), "%s%s", slash, pattern + fixed);
  return more >= 0 && static_cast<size_t>(length + more) < size && strcmp(pattern, out) != 0;
}

// Matches one entry of SLUICE_DATASET: a glob, a file, or a folder with all files below it.
// Compares it as it is written or, with `linked`, with its symbolic links resolved, which asks
// their mounts.
bool matches(const char* pattern, const char* path, bool linked) {
  char absolute[2048];
  if (pattern[0] != '/') {
    char folder[1024];
    if (sys::call(SYS_getcwd, sys::word(folder), sizeof folder) <= 0) return false;
    if (strncmp(pattern, "./", 2) == 0) pattern += 2;
    if (static_cast<size_t>(snprintf(absolute, sizeof absolute, "%s/%s", folder, pattern)) >=
        sizeof absolute) {
      return false;
    }
    pattern = absolute;
  }
  if (!linked) return covers(pattern, path);
  char resolved[2048];
  return resolve(pattern, resolved, sizeof resolved) && covers(resolved, path);
}

// Whether an entry of SLUICE_DATASET matches(). Sets *automatic if the list contains `auto`.
bool listed(const char* path, bool linked, bool* automatic) {
  for (const char* at = patterns(); *at != '\0';) {
    const char* end = strchrnul(at, ':');
    char pattern[1024];
    const auto length = static_cast<size_t>(end - at);
    if (length > 0 && length < sizeof pattern) {
      memcpy(pattern, at, length);
      pattern[length] = '\0';
      if (strcmp(pattern, "auto") == 0) {
        *automatic = true;
      } else if (matches(pattern, path, linked)) {
        return true;
      }
    }
    at = *end == ':' ? end + 1 : end;
  }
  return false;
}

// Whether SLUICE_DATASET names the path. Sets *automatic if the list is empty or contains `auto`.
// An entry whose mount answers nothing holds up no file that another one names as it is written.
bool named(const char* path, bool* automatic) {
  *automatic = *patterns() == '\0';
  if (!listed(path, false, automatic) && !listed(path, true, automatic)) return false;
  dataset_matched();
  return true;
}

bool read_meta(int fd, off_t at, LmdbMeta* out) {
  const long got = sys::call(SYS_pread64, fd, sys::word(out), sizeof *out, at);
  return got == sizeof *out && out->magic == kLmdbMagic;
}

// The newer of the two meta pages has the root's page number. A page that is being rewritten may
// read as garbage: the result is only a hint, and bounded by the file's size.
void find_root(int fd, const struct stat& about, const LmdbMeta& first, DataFile* out) {
  const uint32_t page = first.free_list.pad;
  if (page < kMinLmdbPage || page > kMaxLmdbPage || (page & (page - 1)) != 0) return;
  LmdbMeta second;
  const bool newer =
      read_meta(fd, static_cast<off_t>(page), &second) && second.transaction > first.transaction;
  const uint64_t root = newer ? second.main.root : first.main.root;
  if (root >= static_cast<uint64_t>(about.st_size) / page) return;
  out->first_wanted = root * page;
  out->wanted_bytes = page;
}

bool is_big(int fd, const struct stat& about) {
  const auto size = static_cast<uint64_t>(about.st_size);
  return size >= kBigFile || (size >= kBigSlowFile && on_slow_mount(fd, about));
}

}  // namespace

bool may_be_streamed(int fd, const struct stat& about) {
  return S_ISREG(about.st_mode) &&
         (is_big(fd, about) ||
          (*patterns() != '\0' && about.st_size >= static_cast<off_t>(kSmallestMapping)));
}

bool recognise(int fd, const struct stat& about, bool mapped, DataFile* out) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length = sys::call(SYS_readlink, sys::word(link), sys::word(out->path),
                                static_cast<long>(sizeof out->path - 1));
  out->path[length > 0 ? length : 0] = '\0';
  LmdbMeta meta;
  if (mapped && about.st_size >= static_cast<off_t>(kSmallestMapping) && read_meta(fd, 0, &meta)) {
    out->lmdb = true;
    find_root(fd, about, meta, out);
  }
  bool automatic = false;
  bool wanted = false;
  with_room([&] { wanted = named(out->path, &automatic); });
  if (wanted || out->lmdb) return true;
  if (!automatic || !is_big(fd, about)) return false;
  const long mode = sys::call(SYS_fcntl, fd, F_GETFL);
  return !sys::failed(mode) && (mode & O_ACCMODE) == O_RDONLY;
}

}  // namespace sluice::preload
