// Why this is safe. No Python code runs in the hook: it only adds a pending call, which CPython
// allows from any thread, with and without the GIL. The one lock that this takes is that of the
// list of pending calls. Its holders hold it for a few instructions, in which they load no library;
// and a signal handler, which could interrupt them, may not call dlopen. The interpreter makes the
// call in its main thread, with the GIL held, between two instructions: signal handlers written in
// Python run there too, so interrupted code expects other code to run at such a point. The call
// leaves no exception of the adapter behind: an Exception comes from the adapter and is dropped;
// any other (KeyboardInterrupt) is meant for the job and is passed on.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "preload/base/log.h"
#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/startup/startup.h"

namespace sluice::preload {
namespace {

// Python's functions, looked up in the program: objects are opaque here.
using Object = void;
constexpr int kFileInput = 257;  // Py_file_input, the same in every Python 3

template <typename Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

struct Python {
  const char* (*version)() = find<const char* (*)()>("Py_GetVersion");
  int (*initialized)() = find<int (*)()>("Py_IsInitialized");
  int (*add_pending)(int (*)(void*),
                     void*) = find<int (*)(int (*)(void*), void*)>("Py_AddPendingCall");
  Object* (*dictionary)() = find<Object* (*)()>("PyDict_New");
  int (*set_item)(Object*, const char*,
                  Object*) = find<int (*)(Object*, const char*, Object*)>("PyDict_SetItemString");
  Object* (*text)(const char*) = find<Object* (*)(const char*)>("PyUnicode_DecodeFSDefault");
  Object* (*builtins)() = find<Object* (*)()>("PyEval_GetBuiltins");
  Object* (*run)(const char*, int, Object*, Object*, void*) =
      find<Object* (*)(const char*, int, Object*, Object*, void*)>("PyRun_StringFlags");
  Object* (*occurred)() = find<Object* (*)()>("PyErr_Occurred");
  int (*matches)(Object*) = find<int (*)(Object*)>("PyErr_ExceptionMatches");
  void (*clear)() = find<void (*)()>("PyErr_Clear");
  void (*release)(Object*) = find<void (*)(Object*)>("Py_DecRef");
  Object** exception = find<Object**>("PyExc_Exception");

  bool whole() const {
    return version != nullptr && initialized != nullptr && add_pending != nullptr &&
           dictionary != nullptr && set_item != nullptr && text != nullptr && builtins != nullptr &&
           run != nullptr && occurred != nullptr && matches != nullptr && clear != nullptr &&
           release != nullptr && exception != nullptr;
  }
};

constinit std::atomic<bool> g_done{false};

// "/somewhere/torch/_C.cpython-311-x86_64-linux-gnu.so"
bool is_torch(const char* path) {
  static constexpr char kFolder[] = "/torch/_C.";
  const char* name = strrchr(path, '/');
  constexpr size_t kBefore = sizeof "/torch" - 1;
  return name != nullptr && static_cast<size_t>(name - path) >= kBefore &&
         strncmp(name - kBefore, kFolder, sizeof kFolder - 1) == 0;
}

bool put(const Python& python, Object* names, const char* name, const char* value) {
  Object* text = python.text(value);
  const bool done = text != nullptr && python.set_item(names, name, text) == 0;
  if (text != nullptr) python.release(text);
  return done;
}

// Runs the adapter by path in a new namespace: the file itself removes its entry from sys.path.
bool run_adapter(const Python& python) {
  char path[4200];
  snprintf(path, sizeof path, "%s/sitecustomize.py", late_adapter());
  Object* names = python.dictionary();
  if (names == nullptr) return false;
  Object* result = nullptr;
  if (put(python, names, "__file__", path) && put(python, names, "__name__", "sluice_late") &&
      python.set_item(names, "__builtins__", python.builtins()) == 0) {
    result = python.run(
        "with open(__file__, 'rb') as _text:\n"
        "    _code = compile(_text.read(), __file__, 'exec')\n"
        "exec(_code)\n",
        kFileInput, names, names, nullptr);
  }
  if (result != nullptr) python.release(result);
  python.release(names);
  return result != nullptr;
}

int pending_call(void*) {
  const Python python;
  if (python.occurred() != nullptr) return -1;  // an earlier exception of other code
  if (run_adapter(python)) return 0;
  if (python.occurred() != nullptr && python.matches(*python.exception) == 0) return -1;
  python.clear();
  say(LogLevel::kDebug, "pytorch: adapter off: %s/sitecustomize.py failed", late_adapter());
  return 0;
}

}  // namespace

void library_is_loaded(const char* path) {
  if (late_adapter() == nullptr || path == nullptr || !is_torch(path)) return;
  if (g_settings.off || in_vfork_child()) return;
  if (g_done.exchange(true, std::memory_order_relaxed)) return;
  const Python python;
  const char* why = nullptr;
  if (!python.whole() || strncmp(python.version(), "3.", 2) != 0 || python.initialized() == 0) {
    why = "this Python is not known";
  } else if (python.add_pending(pending_call, nullptr) != 0) {
    why = "too many pending calls";
  }
  if (why != nullptr) say(LogLevel::kDebug, "pytorch: adapter off: %s", why);
}

}  // namespace sluice::preload
