// Prints where in the job's code mapped data is read, by the bytes that its checkpoints covered.
#include "preload/report/callsite_report.h"

#include <dlfcn.h>

#include <cstdio>

#include "preload/base/log.h"
#include "preload/base/settings.h"
#include "preload/handler/callsites.h"

namespace sluice::preload {
namespace {

void name_of(uintptr_t address, char* out, size_t size) {
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

}  // namespace

void report_callsites() {
  if (!g_settings.callsites) return;
  CallsiteCount best[10];
  const size_t count = most_read_callsites(best, sizeof best / sizeof *best);
  for (size_t i = 0; i < count; ++i) {
    char name[300];
    name_of(best[i].pc, name, sizeof name);
    say(LogLevel::kWarn, "callsite %.1f MB in %llu touches: %s",
        static_cast<double>(best[i].bytes) / 1e6, static_cast<unsigned long long>(best[i].times),
        name);
    for (size_t depth = 0; depth < kCallsiteDepth && best[i].callers[depth] != 0; ++depth) {
      name_of(best[i].callers[depth], name, sizeof name);
      say(LogLevel::kWarn, "  called from %s", name);
    }
  }
}

}  // namespace sluice::preload
