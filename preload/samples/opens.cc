#include "preload/samples/opens.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "preload/base/thread_state.h"

namespace sluice::preload {
namespace {

// Only the thread that set g_busy uses the text.
constinit std::atomic<bool> g_busy{false};
constinit char g_text[32 << 10] = {};
constinit size_t g_used = 0;  // bytes of g_text, whole names

}  // namespace

int watch_opens(bool on) {
  if (on == t_state.watches_opens) return 0;
  if (on && g_busy.exchange(true, std::memory_order_acquire)) return -EBUSY;
  g_used = 0;
  t_state.watches_opens = on;
  if (!on) g_busy.store(false, std::memory_order_release);
  return 0;
}

void note_opened(const char* path, size_t length) {
  const size_t used = g_used;  // a signal handler that opens files may come in between
  if (length + 1 > sizeof g_text - used) return;
  memcpy(g_text + used, path, length);
  g_text[used + length] = '\0';
  g_used = used + length + 1;
}

int take_opens(char* text, uint64_t size) {
  if (!t_state.watches_opens || text == nullptr) return -EINVAL;
  size_t length = std::min<uint64_t>(g_used, size);
  while (length > 0 && g_text[length - 1] != '\0') --length;
  memcpy(text, g_text, length);
  g_used = 0;
  return static_cast<int>(length);
}

void opens_after_fork() {
  t_state.watches_opens = false;
  g_busy.store(false, std::memory_order_release);
}

}  // namespace sluice::preload
