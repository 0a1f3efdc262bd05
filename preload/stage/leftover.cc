#include "preload/stage/leftover.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cstring>

#include "preload/base/process.h"
#include "preload/base/sys.h"
#include "preload/session/client.h"
#include "preload/stage/lookup.h"

namespace sluice::preload {
namespace {

// The kernel's struct linux_dirent64.
struct Entry {
  uint64_t inode;
  int64_t next;
  uint16_t length;
  uint8_t type;
  char name[];
};

// Unlinks the files in the folder except its lock, which is removed last: until then no process
// finds the folder unlocked.
void empty(long folder) {
  alignas(Entry) char buffer[4096];
  for (;;) {
    const long got = sys::call(SYS_getdents64, folder, sys::word(buffer), sizeof buffer);
    if (got <= 0) return;
    bool any = false;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->length;
      if (entry->type != DT_REG || strcmp(entry->name, "lock") == 0) continue;
      any |= sys::call(SYS_unlinkat, folder, sys::word(entry->name), 0) == 0;
    }
    // Removing entries while reading the folder may skip others: start again.
    if (any) sys::call(SYS_lseek, folder, 0, SEEK_SET);
  }
}

}  // namespace

void remove_leftover_stage() {
  const protocol::Stage* stage = g_stage.load(std::memory_order_acquire);
  if (stage == nullptr || !is_root_process() ||
      stage->header.closed.load(std::memory_order_relaxed) != 0) {
    return;
  }
  const long folder = sys::call(SYS_openat, AT_FDCWD, sys::word(stage->header.folder),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (sys::failed(folder)) return;
  const long lock = sys::call(SYS_openat, folder, sys::word("lock"), O_RDONLY | O_CLOEXEC);
  if (!sys::failed(lock)) {
    // An optimizer that is stopped, or busy, still holds the lock.
    if (sys::call(SYS_flock, lock, LOCK_EX | LOCK_NB) == 0) {
      empty(folder);
      sys::call(SYS_unlinkat, folder, sys::word("lock"), 0);
      sys::call(SYS_rmdir, sys::word(stage->header.folder));
    }
    sys::close(static_cast<int>(lock));
  }
  sys::close(static_cast<int>(folder));
}

}  // namespace sluice::preload
