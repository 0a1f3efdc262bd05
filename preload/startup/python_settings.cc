#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/base/self.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/startup/startup.h"

namespace sluice::preload {
namespace {

constexpr char kPath[] = "PYTHONPATH";
constexpr char kWas[] = "SLUICE_PYTHONPATH_WAS";
// Relative to the library's folder: in a build, and when installed.
constexpr const char* kFolders[] = {"../adapters/pytorch", "../share/sluice/adapters/pytorch"};

// Not inlined: nearly all programs stop at this check, so that they touch no more of the stack.
__attribute__((noinline)) bool is_python() {
  char program[4096];
  const long length =
      sys::call(SYS_readlink, sys::word("/proc/self/exe"), sys::word(program), sizeof program - 1);
  if (length <= 0) return false;
  program[length] = '\0';
  const char* name = strrchr(program, '/');
  return name != nullptr && strncmp(name + 1, "python", 6) == 0;
}

// Whether Python reads PYTHONPATH and sitecustomize. -E and -I ignore the former, -S the latter:
// then our entries in the environment would not be removed, and the script would see them.
bool looks_at_path() {
  char words[4096];
  const long fd =
      sys::call(SYS_openat, AT_FDCWD, sys::word("/proc/self/cmdline"), O_RDONLY | O_CLOEXEC);
  if (sys::failed(fd)) return false;
  const long got = sys::call(SYS_read, fd, sys::word(words), sizeof words - 1);
  sys::close(static_cast<int>(fd));
  if (got <= 0) return false;
  words[got] = '\0';
  const char* end = words + got;
  for (const char* word = words + strlen(words) + 1; word < end; word += strlen(word) + 1) {
    if (word[0] != '-' || word[1] == '\0') return true;  // the script
    if (word[1] == '-') continue;
    for (const char* flag = word + 1; *flag != '\0'; ++flag) {
      if (strchr("EIS", *flag) != nullptr) return false;
      if (*flag == 'c' || *flag == 'm') return true;  // the rest belongs to the program
      if (*flag != 'W' && *flag != 'X') continue;
      if (flag[1] == '\0') word += strlen(word) + 1;  // its argument is the next word
      break;
    }
    if (word >= end) break;
  }
  return true;
}

// The adapter's folder as the kernel names it. False if it does not exist.
bool find_folder(char* out, size_t size) {
  for (const char* folder : kFolders) {
    char path[4096];
    if (!beside_library(path, sizeof path, folder)) continue;
    const long fd =
        sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (sys::failed(fd)) continue;
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
    const long length =
        sys::call(SYS_readlink, sys::word(link), sys::word(out), static_cast<long>(size - 1));
    sys::close(static_cast<int>(fd));
    if (length <= 0) continue;
    out[length] = '\0';
    return true;
  }
  return false;
}

// The result of late_adapter(); empty: nullptr. Written by the constructor.
constinit char g_late[4096] = {};

}  // namespace

const char* late_adapter() { return g_late[0] != '\0' ? g_late : nullptr; }

namespace {
__attribute__((noinline)) void offer_to_python() {
  char folder[4096];
  if (!find_folder(folder, sizeof folder) || strchr(folder, ':') != nullptr) return;
  if (!looks_at_path()) {
    strcpy(g_late, folder);
    return;
  }
  char list[16384];
  const char* was = getenv(kPath);
  const int length = was == nullptr || *was == '\0'
                         ? snprintf(list, sizeof list, "%s", folder)
                         : snprintf(list, sizeof list, "%s:%s", folder, was);
  if (length < 0 || static_cast<size_t>(length) >= sizeof list) return;
  if ((was != nullptr ? setenv(kWas, was, 1) : unsetenv(kWas)) != 0) return;
  setenv(kPath, list, 1);
}
}  // namespace

void offer_adapter() {
  if (g_settings.python && is_python()) offer_to_python();
}

}  // namespace sluice::preload
