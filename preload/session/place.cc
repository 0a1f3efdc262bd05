#include "preload/session/place.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "protocol/options.h"
#include "protocol/place.h"

namespace sluice::preload {
namespace {

long read_small(const char* path, char* out, size_t size) {
  const long fd = sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_RDONLY | O_CLOEXEC);
  if (sys::failed(fd)) return fd;
  size_t used = 0;
  for (;;) {
    const long got =
        sys::call(SYS_read, fd, sys::word(out + used), static_cast<long>(size - 1 - used));
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  sys::close(static_cast<int>(fd));
  out[used] = '\0';
  return static_cast<long>(used);
}

}  // namespace

bool find_place(Place* place) {
  const char* given = g_settings.text[static_cast<size_t>(protocol::Option::kSocket)];
  if (given != nullptr && *given != '\0') {
    if (*given != '/' || strlen(given) >= sizeof place->socket) return false;
    strcpy(place->socket, given);
    strcpy(place->folder, given);
    *strrchr(place->folder, '/') = '\0';
    return true;
  }
  const auto uid = static_cast<uint32_t>(sys::call(SYS_geteuid));
  struct stat mounts = {};
  sys::call(SYS_stat, sys::word("/proc/self/ns/mnt"), sys::word(&mounts));
  static constinit char groups[16384];  // one thread at a time; the caller's stack may be small
  read_small("/proc/self/cgroup", groups, sizeof groups);
  return protocol::socket_folder(place->folder, sizeof place->folder, uid) &&
         protocol::socket_path(place->socket, sizeof place->socket, uid, mounts.st_ino,
                               protocol::memory_cgroup_hash(groups));
}

size_t options_text(char* out, size_t size) {
  size_t used = 0;
  for (const protocol::OptionInfo& info : protocol::kOptions) {
    const char* value = g_settings.text[static_cast<size_t>(info.option)];
    if (value == nullptr) continue;
    const int length = snprintf(out + used, size - used, "%s=%s\n", info.flag, value);
    if (length < 0 || static_cast<size_t>(length) >= size - used) break;
    used += static_cast<size_t>(length);
  }
  return used;
}

}  // namespace sluice::preload
