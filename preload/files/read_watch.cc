#include "preload/files/read_watch.h"

#include "preload/base/keep_errno.h"
#include "preload/base/settings.h"

namespace sluice::preload {
namespace {

// A call counts as a wait if it took longer than this plus the time to copy its bytes from memory.
constexpr uint64_t kShortestNs = 100'000;
constexpr uint64_t kCopyBytesPerNs = 3;

}  // namespace

void ReadWatch::judge(uint64_t begin_ns, ssize_t bytes, uint64_t end_ns) {
  const uint64_t copied = bytes > 0 ? static_cast<uint64_t>(bytes) / kCopyBytesPerNs : 0;
  if (end_ns - begin_ns < kShortestNs + copied || g_settings.off) return;
  const KeepErrno keep;
  note_wait(begin_ns, end_ns);
}

}  // namespace sluice::preload
