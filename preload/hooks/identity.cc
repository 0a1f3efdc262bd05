// Calls that change what this process or thread may open, or where its paths lead. Descriptors must
// stay valid across them, so copies are switched to the originals before the call, after which the
// originals might not open.
#include "preload/stage/identity.h"

#include "preload/base/real.h"
#include "preload/cells/retry.h"

using sluice::preload::IdentityChange;
using sluice::preload::retrying;

// One line per call: name, parameters, arguments, and the pointers among them.
#define CHANGING_IDENTITY(name, parameters, arguments, ...)               \
  SLUICE_EXPORT int name parameters noexcept {                            \
    const IdentityChange change;                                          \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }

CHANGING_IDENTITY(setuid, (uid_t u), (u))
CHANGING_IDENTITY(setgid, (gid_t g), (g))
CHANGING_IDENTITY(seteuid, (uid_t u), (u))
CHANGING_IDENTITY(setegid, (gid_t g), (g))
CHANGING_IDENTITY(setreuid, (uid_t r, uid_t e), (r, e))
CHANGING_IDENTITY(setregid, (gid_t r, gid_t e), (r, e))
CHANGING_IDENTITY(setresuid, (uid_t r, uid_t e, uid_t s), (r, e, s))
CHANGING_IDENTITY(setresgid, (gid_t r, gid_t e, gid_t s), (r, e, s))
CHANGING_IDENTITY(setfsuid, (uid_t u), (u))
CHANGING_IDENTITY(setfsgid, (gid_t g), (g))
CHANGING_IDENTITY(setgroups, (size_t n, const gid_t* g), (n, g), g)
CHANGING_IDENTITY(capset, (cap_user_header_t h, const cap_user_data_t d), (h, d), h, d)
CHANGING_IDENTITY(unshare, (int f), (f))
CHANGING_IDENTITY(setns, (int d, int t), (d, t))
CHANGING_IDENTITY(pivot_root, (const char* r, const char* p), (r, p), r, p)

// Reads files and sets groups inside libc, where no hook sees it. No noexcept: it may be a
// cancellation point.
SLUICE_EXPORT int initgroups(const char* user, gid_t group) {
  const IdentityChange change;
  return REAL(initgroups)(user, group);
}
