#include "preload/session/identity.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

#include "preload/base/own_descriptor.h"
#include "preload/base/sys.h"

namespace sluice::preload {
namespace {

constexpr unsigned kBegan = 20;  // blanks between a process's name and its start time

// snprintf is not async-signal-safe.
void stat_path(int pid, char (&path)[32]) {
  char digits[12];
  unsigned count = 0;
  for (unsigned left = static_cast<unsigned>(pid); left != 0 || count == 0; left /= 10) {
    digits[count++] = static_cast<char>('0' + left % 10);
  }
  char* out = path;
  for (const char* c = "/proc/"; *c != '\0'; ++c) *out++ = *c;
  while (count != 0) *out++ = digits[--count];
  for (const char* c = "/stat"; *c != '\0'; ++c) *out++ = *c;
  *out = '\0';
}

}  // namespace

uint64_t process_began(int pid) {
  char path[32];
  stat_path(pid, path);
  const OwnDescriptor fd(sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_RDONLY | O_CLOEXEC));
  char text[512];
  const long got = fd.number() < 0 ? -1
                                   : sys::call(SYS_read, fd.number(), sys::word(text),
                                               static_cast<long>(sizeof text - 1));
  if (got <= 0) return 0;
  text[got] = '\0';
  // "4711 (name) S 4710 ...": the name may contain any character.
  const char* at = strrchr(text, ')');
  for (unsigned field = 0; at != nullptr && field < kBegan; ++field) {
    at = strchr(at + 1, ' ');
  }
  uint64_t began = 0;
  for (at = at == nullptr ? "" : at + 1; *at >= '0' && *at <= '9'; ++at) {
    began = began * 10 + static_cast<uint64_t>(*at - '0');
  }
  return began;
}

uint64_t time_namespace() {
  struct stat about;
  const long looked = sys::call(SYS_stat, sys::word("/proc/self/ns/time"), sys::word(&about));
  return looked == 0 ? about.st_ino : 0;
}

}  // namespace sluice::preload
