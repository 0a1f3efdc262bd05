#include "preload/stage/identity.h"

#include <atomic>

#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/stage/original.h"
#include "protocol/access_identity.h"

namespace sluice::preload {
namespace {

// Increases before and after each change; never 0, the initial value of a window's place_known.
constinit std::atomic<uint64_t> g_changes{1};

}  // namespace

bool same_identity(const protocol::Stage& stage) {
  protocol::AccessIdentity mine = stage.header.identity;
  const auto call = [](long number, long a, long b, long c) { return sys::call(number, a, b, c); };
  if (!protocol::read_access_rights(call, &mine)) return false;
  // Loaded before the place is read, so that a change meanwhile is detected the next time.
  const uint64_t changes = g_changes.load(std::memory_order_acquire);
  const bool known = t_state.place_known == changes;
  if (!known && !protocol::read_access_place(call, &mine)) return false;
  if (!(mine == stage.header.identity)) return false;
  // Outside of windows nothing is cached: another optimizer may be in use at the next call.
  if (t_state.windows != 0) t_state.place_known = changes;
  return true;
}

IdentityChange::IdentityChange(bool changes) : changes_(changes) {
  if (!changes_) return;
  use_all_originals();
  g_changes.fetch_add(1, std::memory_order_acq_rel);
}

IdentityChange::~IdentityChange() {
  if (changes_) g_changes.fetch_add(1, std::memory_order_acq_rel);
}

bool changes_mounts(long number) {
  constexpr long kMoveMount = 429;
  return number == SYS_mount || number == SYS_umount2 || number == kMoveMount;
}

bool changes_identity(long number) {
  switch (number) {
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setfsuid:
    case SYS_setfsgid:
    case SYS_setgroups:
    case SYS_capset:
    case SYS_unshare:
    case SYS_setns:
    case SYS_chroot:
    case SYS_pivot_root:
      return true;
    default:
      return changes_mounts(number);
  }
}

}  // namespace sluice::preload
