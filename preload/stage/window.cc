#include "preload/stage/window.h"

#include "preload/base/sys.h"
#include "preload/stage/original.h"

namespace sluice::preload {

void window_begins() {
  if (t_state.sample_tid == 0) t_state.sample_tid = static_cast<uint32_t>(sys::tid());
  if (t_state.windows++ == 0) t_state.place_known = 0;
}

void window_ends() {
  if (t_state.windows == 0 || --t_state.windows != 0) return;
  use_originals_of_window();
}

}  // namespace sluice::preload
