#include "preload/session/record_settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/base/log.h"
#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "protocol/trace.h"

namespace sluice::preload {
namespace {

constexpr const char* kVariable =
    protocol::option_info(protocol::Option::kRecord).variable;  // "SLUICE_RECORD"

// "SLUICE_RECORD=+/path", for the environment; g_settings points into it.
constinit char g_entry[4200] = {};
// Set once the file could not be opened for a session: it is not tried again.
constinit std::atomic<bool> g_given_up{false};

const char*& value() { return g_settings.text[static_cast<size_t>(protocol::Option::kRecord)]; }

// In place: some programs (bash) have a setenv of their own. nullptr removes the variable.
void put_in_environment(char* entry) {
  const size_t length = strlen(kVariable);
  bool found = false;
  char** left = environ;
  for (char** at = environ; *at != nullptr; ++at) {
    const bool ours = strncmp(*at, kVariable, length) == 0 && (*at)[length] == '=';
    if (!ours) {
      *left++ = *at;
    } else if (entry != nullptr && !found) {
      *left++ = entry;
      found = true;
    }
  }
  *left = nullptr;
  // Not in the environment: the value came from the file that SLUICE_CONFIG names.
  if (!found && entry != nullptr) putenv(entry);
}

// O_NONBLOCK and O_NOCTTY: the path may be a pipe without a reader, or a terminal.
long open_file(const char* path) {
  return sys::call(SYS_openat, AT_FDCWD, sys::word(path),
                   O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
}

// Truncates the file to an empty trace. 0 or a negative errno; -ENOTSUP: not a regular file.
long empty_file(int fd) {
  struct stat about;
  const long known = sys::call(SYS_fstat, fd, sys::word(&about));
  if (known != 0) return known;
  if (!S_ISREG(about.st_mode)) return -ENOTSUP;
  const long cut = sys::call(SYS_ftruncate, fd, 0);
  if (cut != 0) return cut;
  const protocol::TraceHeader header = {protocol::kTraceMagic, protocol::kTraceVersion,
                                        sizeof(protocol::TraceRecord), 0};
  const long wrote = sys::call(SYS_write, fd, sys::word(&header), sizeof header);
  if (wrote == sizeof header) return 0;
  sys::call(SYS_ftruncate, fd, 0);
  return wrote < 0 ? wrote : -ENOSPC;
}

// Stores the absolute path as the kernel names it: children may have another working directory.
bool remember_path(int fd) {
  const int used = snprintf(g_entry, sizeof g_entry, "%s=+", kVariable);
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length = sys::call(SYS_readlink, sys::word(link), sys::word(g_entry + used),
                                static_cast<long>(sizeof g_entry) - used - 1);
  if (length <= 0 || g_entry[used] != '/') return false;
  g_entry[used + length] = '\0';
  value() = g_entry + used - 1;
  return true;
}

}  // namespace

void begin_recording() {
  const char* path = value();
  if (path == nullptr || *path == '\0' || *path == '+') return;
  const long fd = open_file(path);
  long result = fd;
  if (!sys::failed(fd)) {
    result = empty_file(static_cast<int>(fd));
    if (result == 0 && !remember_path(static_cast<int>(fd))) result = -ENAMETOOLONG;
    sys::close(static_cast<int>(fd));
  }
  if (result == 0) {
    put_in_environment(g_entry);
    return;
  }
  say(LogLevel::kWarn, "cannot record into SLUICE_RECORD=%s: %s; samples are not recorded", path,
      result == -ENOTSUP ? "not a regular file" : strerrordesc_np(static_cast<int>(-result)));
  value() = nullptr;
  put_in_environment(nullptr);
}

int open_recording() {
  const char* path = value();
  if (path == nullptr || *path != '+' || g_given_up.load(std::memory_order_relaxed)) return -1;
  const long fd = open_file(path + 1);
  if (!sys::failed(fd)) return static_cast<int>(fd);
  say(is_root_process() ? LogLevel::kWarn : LogLevel::kInfo,
      "cannot record into SLUICE_RECORD=%s: %s; samples are not recorded", path,
      strerrordesc_np(static_cast<int>(-fd)));
  g_given_up.store(true, std::memory_order_relaxed);
  return -1;
}

}  // namespace sluice::preload
