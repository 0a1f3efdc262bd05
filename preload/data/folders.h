// Folders that the job lists. Of those on slow storage that took long, until the first entry was
// there, the optimizer is notified, and lists ahead of the job (policy/folders/scan_plan.h).
#pragma once

#include <dirent.h>

#include <cstdint>

#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/base/thread_state.h"

namespace sluice::preload {

// Times the call that opens a folder stream. Trivially destructible: a cancelled thread unwinds
// through it.
class FolderWatch {
 public:
  FolderWatch() : begin_ns_(g_settings.prefetch && !g_settings.off ? sys::now_ns() : 0) {}
  // The call has just opened `folder`; nullptr: it failed.
  void opened(const DIR* folder) const {
    if (begin_ns_ == 0 || folder == nullptr) return;
    t_state.folder = folder;
    t_state.folder_ns = sys::now_ns() - begin_ns_;
  }

 private:
  uint64_t begin_ns_;
};

// The folder, which the thread has just opened and read from for the first time, took so long.
// Preserves errno.
void folder_was_listed(DIR* folder, uint64_t took_ns);

// Reads an entry by read(folder). Costs a comparison, but for the first one.
template <typename Read>
auto read_folder(DIR* folder, Read read) {
  if (__builtin_expect(folder != t_state.folder || folder == nullptr, 1)) return read(folder);
  t_state.folder = nullptr;
  const uint64_t begin_ns = sys::now_ns();
  const auto entry = read(folder);
  folder_was_listed(folder, t_state.folder_ns + (sys::now_ns() - begin_ns));
  return entry;
}

}  // namespace sluice::preload
