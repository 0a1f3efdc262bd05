// Loading and unloading. A program without data pays only for the constructor.
#include <sys/auxv.h>

#include "preload/base/log.h"
#include "preload/base/process.h"
#include "preload/base/self.h"
#include "preload/base/settings.h"
#include "preload/handler/mask.h"
#include "preload/report/report.h"
#include "preload/session/client.h"
#include "preload/session/record_settings.h"
#include "preload/startup/startup.h"

namespace sluice::preload {
namespace {

__attribute__((constructor)) void loaded() {
  if (getauxval(AT_SECURE) != 0) return;  // runs with another user's rights: stay inactive
  remember_stderr();
  find_clock();
  read_settings();
  if (g_settings.off) return;
  process_init();
  session_init();
  watch_forks();
  adopt_inherited_mask();
  make_preload_absolute();
  begin_recording();
  offer_adapter();
  prepare_crash_trace();
}

__attribute__((destructor)) void unloaded() { process_ends(); }

}  // namespace
}  // namespace sluice::preload
