#include "preload/real.h"

#include <dlfcn.h>

#include "preload/log.h"
#include "preload/sys.h"

namespace sluice::preload {
namespace {

#define SLUICE_NAME(name) #name,
constexpr const char* kNames[] = {SLUICE_HOOKS(SLUICE_NAME)};
#undef SLUICE_NAME
constexpr uint32_t kHookCount = static_cast<uint32_t>(Hook::kCount);

constinit std::atomic<void*> g_addresses[kHookCount] = {};

}  // namespace

void* real_address(Hook hook) {
  const auto index = static_cast<uint32_t>(hook);
  void* address = g_addresses[index].load(std::memory_order_relaxed);
  if (__builtin_expect(address != nullptr, 1)) return address;
  address = dlsym(RTLD_NEXT, kNames[index]);
  if (address == nullptr) {
    say(LogLevel::kError, "libc has no %s", kNames[index]);
    sys::call(SYS_exit_group, 127);
  }
  g_addresses[index].store(address, std::memory_order_relaxed);
  return address;
}

void resolve_hooks() {
  for (uint32_t i = 0; i < kHookCount; ++i) {
    g_addresses[i].store(dlsym(RTLD_NEXT, kNames[i]), std::memory_order_relaxed);
  }
}

}  // namespace sluice::preload
