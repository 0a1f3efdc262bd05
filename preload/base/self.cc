#include "preload/base/self.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/base/start_page.h"
#include "preload/base/sys.h"

namespace sluice::preload {
namespace {

using Clock = int (*)(clockid_t, struct timespec*);
SLUICE_TOUCHED_AT_START constinit Clock g_clock = nullptr;
constinit char g_path[4096] = {};  // absolute; empty until library_path() is called

}  // namespace

bool library_path(char* out, size_t size) {
  if (g_path[0] == '\0') {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&find_clock), &info) == 0 || info.dli_fname == nullptr) {
      return false;
    }
    char folder[2048] = "";
    if (info.dli_fname[0] != '/') {
      if (sys::call(SYS_getcwd, sys::word(folder), sizeof folder - 1) <= 0) return false;
      strcat(folder, "/");
    }
    const char* name = info.dli_fname;
    while (strncmp(name, "./", 2) == 0) name += 2;
    snprintf(g_path, sizeof g_path, "%s%s", folder, name);
  }
  return static_cast<size_t>(snprintf(out, size, "%s", g_path)) < size;
}

bool beside_library(char* out, size_t size, const char* name) {
  if (!library_path(out, size)) return false;
  char* slash = strrchr(out, '/');
  if (slash == nullptr) return false;
  const size_t left = size - static_cast<size_t>(slash + 1 - out);
  return static_cast<size_t>(snprintf(slash + 1, left, "%s", name)) < left;
}

void name_of_code(uintptr_t address, char* out, size_t size) {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_fname == nullptr) {
    snprintf(out, size, "0x%lx", static_cast<unsigned long>(address));
    return;
  }
  const bool named = info.dli_sname != nullptr;
  const auto start = reinterpret_cast<uintptr_t>(named ? info.dli_saddr : info.dli_fbase);
  snprintf(out, size, "%s(%s+0x%lx)", info.dli_fname, named ? info.dli_sname : "",
           static_cast<unsigned long>(address - start));
}

void find_clock() {
  // libc's clock_gettime is one indirection to the vDSO, without a lock or errno on success; called
  // by address so that the handler never enters the lazy binder.
  g_clock = &clock_gettime;
}

uint64_t sys::now_ns() {
  struct timespec now = {};
  if (g_clock != nullptr) {
    g_clock(CLOCK_MONOTONIC, &now);
  } else {
    sys::call(SYS_clock_gettime, CLOCK_MONOTONIC, sys::word(&now));
  }
  return static_cast<uint64_t>(now.tv_sec) * 1000000000U + static_cast<uint64_t>(now.tv_nsec);
}
uint64_t sys::thread_cpu_ns() {
  struct timespec now = {};
  sys::call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, sys::word(&now));
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace sluice::preload
