#include "preload/base/real.h"

#include <dlfcn.h>

#include "preload/base/log.h"
#include "preload/base/start_page.h"
#include "preload/base/sys.h"

namespace sluice::preload {
namespace {

// Concatenated names: a table of pointers would need relocations at every program's start.
#define SLUICE_NAME(name) #name "\0"
constexpr char kNames[] = SLUICE_HOOKS(SLUICE_NAME);
#undef SLUICE_NAME
constexpr uint32_t kHookCount = static_cast<uint32_t>(Hook::kCount);

SLUICE_TOUCHED_AT_START constinit std::atomic<void*> g_addresses[kHookCount] = {};
SLUICE_TOUCHED_AT_START constinit std::atomic<bool> g_resolved{false};

const char* name_of(uint32_t index) {
  const char* name = kNames;
  while (index-- != 0) name += __builtin_strlen(name) + 1;
  return name;
}

}  // namespace

void* real_address(Hook hook) {
  const auto index = static_cast<uint32_t>(hook);
  void* address = g_addresses[index].load(std::memory_order_relaxed);
  if (__builtin_expect(address != nullptr, 1)) return address;
  address = dlsym(RTLD_NEXT, name_of(index));
  if (address == nullptr) {
    say(LogLevel::kError, "libc has no %s", name_of(index));
    sys::call(SYS_exit_group, 127);
  }
  g_addresses[index].store(address, std::memory_order_relaxed);
  return address;
}

void resolve_hooks() {
  if (__builtin_expect(g_resolved.load(std::memory_order_acquire), 1)) return;
  const char* name = kNames;
  for (uint32_t i = 0; i < kHookCount; ++i) {
    g_addresses[i].store(dlsym(RTLD_NEXT, name), std::memory_order_relaxed);
    name += __builtin_strlen(name) + 1;
  }
  g_resolved.store(true, std::memory_order_release);
}

}  // namespace sluice::preload
