#include "preload/startup/crash_trace.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

#include "preload/base/log.h"
#include "preload/base/settings.h"
#include "preload/handler/fault.h"

namespace sluice::preload {
namespace {

constexpr int kMaxFrames = 64;
using Backtrace = int (*)(void**, int);
constinit Backtrace g_backtrace = nullptr;

void crash_trace() {
  void* frames[kMaxFrames];
  const int count = g_backtrace(frames, kMaxFrames);
  char line[512];
  for (int i = 0; i < count; ++i) {
    Dl_info info = {};
    const auto address = reinterpret_cast<uintptr_t>(frames[i]);
    int length = 0;
    if (dladdr(frames[i], &info) != 0 && info.dli_fname != nullptr) {
      const bool named = info.dli_sname != nullptr;
      const auto start = reinterpret_cast<uintptr_t>(named ? info.dli_saddr : info.dli_fbase);
      length = snprintf(line, sizeof line, "sluice: crash #%d %s(%s+0x%lx)\n", i, info.dli_fname,
                        named ? info.dli_sname : "", static_cast<unsigned long>(address - start));
    } else {
      length = snprintf(line, sizeof line, "sluice: crash #%d 0x%lx\n", i,
                        static_cast<unsigned long>(address));
    }
    if (length > 0)
      say_raw(line, static_cast<size_t>(length) < sizeof line ? static_cast<size_t>(length)
                                                              : sizeof line - 1);
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
