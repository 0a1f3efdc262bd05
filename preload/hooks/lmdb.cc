// Records where LMDB's values lie: mdb_get and mdb_cursor_get return pointers into the mapping.
// They are not in libc: the real ones are those that the caller would bind to without this library,
// in the global scope or among the libraries that the caller's was loaded with (as for a Python
// extension).
//
// PyPI's package lmdb contains LMDB; its extension refers to LMDB's functions by name, so hooks
// come first. Up to 2 the names are LMDB's own; from 3 on it contains LMDB 0.9 and 1.0, with
// prefixes of their own.
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "preload/base/real.h"
#include "preload/samples/samples.h"

namespace {

// lmdb.h; declared here because the library needs no LMDB to be built or to run.
struct Value {
  size_t size;
  void* data;
};
using Get = int (*)(void*, unsigned, Value*, Value*);
using CursorGet = int (*)(void*, Value*, Value*, int);

// The real function by return address: the same caller binds to the same function. Entries are
// written once; while one is being written its `caller` is its own address, which no caller has.
struct Found {
  std::atomic<void*> caller{nullptr};
  std::atomic<void*> real{nullptr};
};
constexpr size_t kMaxCallers = 64;
constinit Found g_found[6][kMaxCallers];

void* search(const char* name, void* caller) {
  void* real = dlsym(RTLD_NEXT, name);
  Dl_info about;
  if (real != nullptr || dladdr(caller, &about) == 0) return real;
  // Never closed: the caller's library stays loaded, so the entry stays valid.
  void* handle = REAL(dlopen)(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return handle != nullptr ? dlsym(handle, name) : nullptr;
}

void* real_for(size_t which, const char* name, void* caller) {
  for (const Found& found : g_found[which]) {
    void* known = found.caller.load(std::memory_order_acquire);
    if (known == caller) return found.real.load(std::memory_order_relaxed);
    if (known == nullptr) break;
  }
  const int saved = errno;
  void* real = search(name, caller);
  errno = saved;
  for (Found& found : g_found[which]) {
    void* unused = nullptr;
    if (real == nullptr || !found.caller.compare_exchange_strong(unused, &found)) continue;
    found.real.store(real, std::memory_order_relaxed);
    found.caller.store(caller, std::memory_order_release);
    break;
  }
  return real;
}

int get(size_t which, const char* name, void* caller, void* transaction, unsigned database,
        Value* key, Value* data) {
  const auto real = reinterpret_cast<Get>(real_for(which, name, caller));
  if (real == nullptr) return ENOSYS;
  const int result = real(transaction, database, key, data);
  if (result == 0 && data != nullptr) sluice::preload::sample_memory(data->data, data->size);
  return result;
}

int cursor_get(size_t which, const char* name, void* caller, void* cursor, Value* key, Value* data,
               int operation) {
  const auto real = reinterpret_cast<CursorGet>(real_for(which, name, caller));
  if (real == nullptr) return ENOSYS;
  const int result = real(cursor, key, data, operation);
  if (result == 0 && data != nullptr) sluice::preload::sample_memory(data->data, data->size);
  return result;
}

}  // namespace

#define SLUICE_LMDB(which, prefix)                                                                 \
  SLUICE_EXPORT int prefix##_get(void* transaction, unsigned database, Value* key, Value* data) {  \
    return get(2 * (which), #prefix "_get", __builtin_return_address(0), transaction, database,    \
               key, data);                                                                         \
  }                                                                                                \
  SLUICE_EXPORT int prefix##_cursor_get(void* cursor, Value* key, Value* data, int operation) {    \
    return cursor_get(2 * (which) + 1, #prefix "_cursor_get", __builtin_return_address(0), cursor, \
                      key, data, operation);                                                       \
  }

SLUICE_LMDB(0, mdb)
SLUICE_LMDB(1, mdb09)
SLUICE_LMDB(2, mdb10)
