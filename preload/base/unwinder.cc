#include "preload/base/unwinder.h"

#include <dlfcn.h>
#include <unwind.h>

#include <atomic>
#include <cstdlib>

namespace sluice::preload {
namespace {

// Functions called by the compiler's landing pads and by the statically linked C++ runtime.
// clang-format off
#define SLUICE_UNWINDER(X) \
  X(_Unwind_DeleteException) X(_Unwind_GetDataRelBase) X(_Unwind_GetIPInfo) \
  X(_Unwind_GetLanguageSpecificData) X(_Unwind_GetRegionStart) X(_Unwind_GetTextRelBase) \
  X(_Unwind_RaiseException) X(_Unwind_Resume) X(_Unwind_Resume_or_Rethrow) X(_Unwind_SetGR) \
  X(_Unwind_SetIP)
// clang-format on

#define SLUICE_UNWINDER_ID(name) k##name,
enum Function : uint32_t { SLUICE_UNWINDER(SLUICE_UNWINDER_ID) kFunctions };
#undef SLUICE_UNWINDER_ID
#define SLUICE_UNWINDER_NAME(name) #name,
constexpr const char* kNames[] = {SLUICE_UNWINDER(SLUICE_UNWINDER_NAME)};
#undef SLUICE_UNWINDER_NAME

constinit std::atomic<void*> g_functions[kFunctions] = {};

void* function(Function which) {
  void* found = g_functions[which].load(std::memory_order_acquire);
  if (__builtin_expect(found == nullptr, 0)) {
    prepare_unwinder();
    found = g_functions[which].load(std::memory_order_acquire);
    if (found == nullptr) abort();  // as libc does: something is unwinding without an unwinder
  }
  return found;
}

}  // namespace

void prepare_unwinder() {
  if (g_functions[kFunctions - 1].load(std::memory_order_acquire) != nullptr) return;
  void* library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed
  if (library == nullptr) return;
  for (uint32_t i = 0; i < kFunctions; ++i) {
    g_functions[i].store(dlsym(library, kNames[i]), std::memory_order_release);
  }
}

}  // namespace sluice::preload

// unwind.h makes these functions visible; the version script hides them from other libraries.
#define SLUICE_UNWIND(result, name, parameters, arguments)           \
  extern "C" result name parameters {                                \
    using sluice::preload::Function;                                 \
    void* const real = sluice::preload::function(Function::k##name); \
    return reinterpret_cast<decltype(&::name)>(real) arguments;      \
  }
using Context = _Unwind_Context*;
using Exception = _Unwind_Exception*;
SLUICE_UNWIND(void, _Unwind_DeleteException, (Exception e), (e))
SLUICE_UNWIND(_Unwind_Ptr, _Unwind_GetDataRelBase, (Context c), (c))
SLUICE_UNWIND(_Unwind_Ptr, _Unwind_GetIPInfo, (Context c, int* before), (c, before))
SLUICE_UNWIND(void*, _Unwind_GetLanguageSpecificData, (Context c), (c))
SLUICE_UNWIND(_Unwind_Ptr, _Unwind_GetRegionStart, (Context c), (c))
SLUICE_UNWIND(_Unwind_Ptr, _Unwind_GetTextRelBase, (Context c), (c))
SLUICE_UNWIND(_Unwind_Reason_Code, _Unwind_RaiseException, (Exception e), (e))
SLUICE_UNWIND(void, _Unwind_Resume, (Exception e), (e))
SLUICE_UNWIND(_Unwind_Reason_Code, _Unwind_Resume_or_Rethrow, (Exception e), (e))
SLUICE_UNWIND(void, _Unwind_SetGR, (Context c, int index, _Unwind_Word value), (c, index, value))
SLUICE_UNWIND(void, _Unwind_SetIP, (Context c, _Unwind_Ptr value), (c, value))

// Nothing in this library throws. Defined so that the C++ runtime's versions are not linked in:
// they allocate 72 KB at every program's start, for exceptions when memory is short.
extern "C" void* __cxa_allocate_exception(size_t) noexcept { abort(); }
extern "C" void __cxa_free_exception(void*) noexcept { abort(); }
extern "C" void* __cxa_allocate_dependent_exception() noexcept { abort(); }
extern "C" void __cxa_free_dependent_exception(void*) noexcept { abort(); }
