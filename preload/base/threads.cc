#include "preload/base/threads.h"

#include <fcntl.h>
#include <sys/single_threaded.h>
#include <time.h>

#include <cstdio>
#include <cstring>

#include "preload/base/own_stack.h"

namespace sluice::preload {
namespace {

constexpr int kAttempts = 20;
constexpr long kPauseNs = 250000;

enum class Blocks : uint8_t { kNothing, kForNow, kYes };

struct KernelEntry {  // struct linux_dirent64
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[1];
};

// "SigBlk:\t<16 hexadecimal digits>" of a thread's status.
bool parse_mask(const char* status, sys::SignalSet* mask) {
  static constexpr char kLine[] = "\nSigBlk:\t";
  const char* at = strstr(status, kLine);
  if (at == nullptr) return false;
  *mask = 0;
  for (at += sizeof kLine - 1; *at != '\n' && *at != '\0'; ++at) {
    const int digit = *at <= '9' ? *at - '0' : *at - 'a' + 10;
    *mask = *mask << 4 | static_cast<sys::SignalSet>(digit);
  }
  return true;
}

Blocks thread_blocks(int folder, const char* name, sys::SignalSet signals) {
  char path[64];
  snprintf(path, sizeof path, "%s/status", name);
  const long fd = sys::call(SYS_openat, folder, sys::word(path), O_RDONLY | O_CLOEXEC);
  if (sys::failed(fd)) return Blocks::kNothing;  // the thread has ended
  char status[4096];
  const long got = sys::call(SYS_read, fd, sys::word(status), sizeof status - 1);
  sys::close(static_cast<int>(fd));
  if (got <= 0) return Blocks::kNothing;
  status[got] = '\0';
  sys::SignalSet mask = 0;
  if (!parse_mask(status, &mask)) return Blocks::kYes;
  if ((mask & signals) == 0 || sys::is_own_block(mask)) return Blocks::kNothing;
  return (mask & sys::kInternalSignals) == sys::kInternalSignals ? Blocks::kForNow : Blocks::kYes;
}

Blocks look(sys::SignalSet signals) {
  const long folder = sys::call(SYS_openat, AT_FDCWD, sys::word("/proc/self/task"),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (sys::failed(folder)) return __libc_single_threaded != 0 ? Blocks::kNothing : Blocks::kYes;
  char own[16];
  snprintf(own, sizeof own, "%d", sys::tid());
  Blocks worst = Blocks::kNothing;
  alignas(KernelEntry) char entries[2048];
  for (;;) {
    const long got = sys::call(SYS_getdents64, folder, sys::word(entries), sizeof entries);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const KernelEntry*>(entries + at);
      at += entry->size;
      if (entry->name[0] == '.' || strcmp(entry->name, own) == 0) continue;
      const Blocks one = thread_blocks(static_cast<int>(folder), entry->name, signals);
      if (one > worst) worst = one;
    }
  }
  sys::close(static_cast<int>(folder));
  return worst;
}

}  // namespace

bool others_block(sys::SignalSet signals) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Blocks blocks = Blocks::kYes;
    on_own_stack([&] { blocks = look(signals); });
    if (blocks != Blocks::kForNow) return blocks == Blocks::kYes;
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = kPauseNs};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
  }
  return true;
}

}  // namespace sluice::preload
