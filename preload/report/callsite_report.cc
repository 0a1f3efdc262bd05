// Prints where in the job's code mapped data is read, by the bytes that its checkpoints covered.
#include "preload/base/log.h"
#include "preload/base/self.h"
#include "preload/base/settings.h"
#include "preload/handler/callsites.h"
#include "preload/report/report_line.h"

namespace sluice::preload {

void report_callsites() {
  if (!g_settings.callsites) return;
  CallsiteCount best[10];
  const size_t count = most_read_callsites(best, sizeof best / sizeof *best);
  for (size_t i = 0; i < count; ++i) {
    char name[300];
    name_of_code(best[i].pc, name, sizeof name);
    say(LogLevel::kWarn, "callsite %.1f MB in %llu touches: %s",
        static_cast<double>(best[i].bytes) / 1e6, static_cast<unsigned long long>(best[i].times),
        name);
    for (size_t depth = 0; depth < kCallsiteDepth && best[i].callers[depth] != 0; ++depth) {
      name_of_code(best[i].callers[depth], name, sizeof name);
      say(LogLevel::kWarn, "  called from %s", name);
    }
  }
}

}  // namespace sluice::preload
