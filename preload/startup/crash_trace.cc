#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

#include "preload/base/log.h"
#include "preload/base/self.h"
#include "preload/base/settings.h"
#include "preload/handler/fault.h"
#include "preload/startup/startup.h"

namespace sluice::preload {
namespace {

constexpr int kMaxFrames = 64;
using Backtrace = int (*)(void**, int);
constinit Backtrace g_backtrace = nullptr;

void crash_trace() {
  void* frames[kMaxFrames];
  const int count = g_backtrace(frames, kMaxFrames);
  char name[480];
  char line[512];
  for (int i = 0; i < count; ++i) {
    name_of_code(reinterpret_cast<uintptr_t>(frames[i]), name, sizeof name);
    const int length = snprintf(line, sizeof line, "sluice: crash #%d %s\n", i, name);
    if (length > 0) say_raw(line, static_cast<size_t>(length));
  }
}

}  // namespace

void prepare_crash_trace() {
  if (!g_settings.crash_trace) return;
  void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr)
    g_backtrace = reinterpret_cast<Backtrace>(dlsym(library, "unw_backtrace"));
  if (g_backtrace == nullptr) {
    say(LogLevel::kWarn, "SLUICE_CRASH_TRACE: no libunwind.so.8");
    return;
  }
  g_before_crash = crash_trace;
}

}  // namespace sluice::preload
