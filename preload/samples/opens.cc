#include "preload/samples/opens.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "preload/base/lock.h"
#include "preload/base/thread_state.h"

namespace sluice::preload {
namespace {

constinit std::atomic<bool> g_busy{false};  // some thread watches
constinit Spinlock g_lock;                  // guards what follows
constinit char g_text[32 << 10] = {};
constinit size_t g_used = 0;  // bytes of g_text, whole names

}  // namespace

int watch_opens(bool on) {
  if (on == t_state.watches_opens) return 0;
  if (on && g_busy.exchange(true, std::memory_order_acquire)) return -EBUSY;
  {
    const Locked locked(g_lock);
    g_used = 0;
  }
  t_state.watches_opens = on;
  if (!on) g_busy.store(false, std::memory_order_release);
  return 0;
}

bool opens_are_watched() {
  return t_state.watches_opens ||
         (t_state.samples_begun == 0 && g_busy.load(std::memory_order_relaxed));
}

void note_opened(const char* path, size_t length) {
  const Locked locked(g_lock);
  if (length + 1 > sizeof g_text - g_used) return;
  memcpy(g_text + g_used, path, length);
  g_text[g_used + length] = '\0';
  g_used += length + 1;
}

int take_opens(char* text, uint64_t size) {
  if (!t_state.watches_opens || text == nullptr) return -EINVAL;
  const Locked locked(g_lock);
  size_t length = std::min<uint64_t>(g_used, size);
  while (length > 0 && g_text[length - 1] != '\0') --length;
  memcpy(text, g_text, length);
  g_used = 0;
  return static_cast<int>(length);
}

void opens_after_fork() {
  t_state.watches_opens = false;
  g_lock.reset();
  g_busy.store(false, std::memory_order_release);
}

}  // namespace sluice::preload
