// Loading and unloading. The constructor is all that a program without data ever pays.
#include <sys/auxv.h>

#include "preload/crash_trace.h"
#include "preload/loader_settings.h"
#include "preload/log.h"
#include "preload/process.h"
#include "preload/python_settings.h"
#include "preload/record_settings.h"
#include "preload/report.h"
#include "preload/self.h"
#include "preload/settings.h"
#include "preload/signals/mask.h"

namespace sluice::preload {
namespace {

__attribute__((constructor)) void loaded() {
  if (getauxval(AT_SECURE) != 0) return;  // somebody else's rights: stay out
  remember_stderr();
  find_clock();
  read_settings();
  if (g_settings.off) return;
  process_init();
  adopt_inherited_mask();
  make_preload_absolute();
  begin_recording();
  offer_adapter();
  prepare_crash_trace();
}

__attribute__((destructor)) void unloaded() { process_ends(); }

}  // namespace
}  // namespace sluice::preload
