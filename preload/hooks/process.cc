// Threads, child processes, exec and exit. vfork and clone: fork.cc.
#include "preload/base/process.h"

#include <alloca.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include "preload/base/real.h"
#include "preload/base/settings.h"
#include "preload/base/unwinder.h"
#include "preload/cells/retry.h"
#include "preload/handler/actions.h"
#include "preload/handler/mask.h"
#include "preload/handler/transition_inside.h"
#include "preload/report/report.h"
#include "preload/stage/original.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

namespace {

constinit std::atomic<uint32_t> g_threads{1};

struct ThreadStart {
  void* (*routine)(void*);
  void* argument;
};

// A thread inherits its creator's mask in the kernel's terms. A mask in its attributes is in the
// application's terms, and is translated here.
void* start_with_mask(void* raw) {
  const ThreadStart start = *static_cast<ThreadStart*>(raw);
  free(raw);
  translate_own_mask();
  return start.routine(start.argument);
}

bool attributes_have_mask(const pthread_attr_t* attributes) {
  sigset_t mask;
  return attributes != nullptr && pthread_attr_getsigmask_np(attributes, &mask) == 0 &&
         (word_of(mask) & (kSegvBit | kShadowBit)) != 0;
}

}  // namespace

SLUICE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                 void* (*routine)(void*), void* argument) noexcept {
  resolve_hooks();
  set_open_limit(g_threads.fetch_add(1, std::memory_order_relaxed) + 1);
  if (g_settings.off || !attributes_have_mask(attributes)) {
    return REAL(pthread_create)(thread, attributes, routine, argument);
  }
  auto* start = static_cast<ThreadStart*>(malloc(sizeof(ThreadStart)));
  if (start == nullptr) return EAGAIN;
  *start = {routine, argument};
  const int result = REAL(pthread_create)(thread, attributes, start_with_mask, start);
  if (result != 0) free(start);
  return result;
}

// A cancellation unwinds frames of this library, perhaps from within a signal handler.
SLUICE_EXPORT int pthread_cancel(pthread_t thread) {
  prepare_unwinder();
  return REAL(pthread_cancel)(thread);
}

// libc's fork runs our pthread_atfork handlers; _Fork runs none.
SLUICE_EXPORT pid_t fork() noexcept {
  resolve_hooks();
  return REAL(fork)();
}
SLUICE_EXPORT pid_t _Fork() noexcept {
  resolve_hooks();
  use_all_originals();  // as the pthread_atfork handler does for fork
  const pid_t pid = REAL(_Fork)();
  if (pid == 0 && process_is_new()) process_after_fork();
  return pid;
}

// A new program inherits the mask, the ignored signals and the descriptors: all must be as the
// application set them.
namespace {
class ExecState {
 public:
  // `actions`: of a spawn, which may pass any descriptor under another number.
  explicit ExecState(const posix_spawn_file_actions_t* actions = nullptr) {
    if (actions != nullptr) {
      use_all_originals();
    } else {
      use_originals_for_exec();
    }
  }
  ~ExecState() {
    if (ignored_) reinstall_fault_handler();
  }
  void pass_ignored() {
    ignored_ =
        fault_handler_installed() && application_action(SIGSEGV, false).sa_handler == SIG_IGN;
    if (ignored_) restore_kernel_action(SIGSEGV, true);
  }
  ExecState(const ExecState&) = delete;
  ExecState& operator=(const ExecState&) = delete;

 private:
  bool ignored_ = false;
};

// Pins every string of a list, and the list itself. Ranges beyond the capacity of `pins` stay open.
void pin_list(Pins& pins, char* const list[]) {
  if (list == nullptr) return;
  size_t count = 0;
  for (; list[count] != nullptr; ++count) pins.add_string(list[count]);
  pins.add(list, (count + 1) * sizeof *list);
}

// exec and spawn read strings before they have any effect, and return EFAULT in errno or as result.
template <typename Call>
int retrying_lists(Call call, const char* path, char* const argv[], char* const environment[]) {
  const auto masked = [&] {
    const MaskForExec mask;  // no code of this library may change the mask before call()
    return call();
  };
  const int result = masked();
  if (result != EFAULT && (result != -1 || errno != EFAULT)) return result;
  Pins pins;
  pins.add_string(path);
  pin_list(pins, argv);
  pin_list(pins, environment);
  return pins.any() ? masked() : result;
}
}  // namespace

// One line per call: name, parameters, arguments, and the path and environment in them.
using List = char* const*;
#define SPAWN(name)                                                                               \
  SLUICE_EXPORT int name(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions, \
                         const posix_spawnattr_t* attributes, List argv, List environment) {      \
    const ExecState state(actions);                                                               \
    const auto call = [&] {                                                                       \
      return REAL(name)(pid, path, actions, attributes, argv, environment);                       \
    };                                                                                            \
    return retrying_lists(call, path, argv, environment);                                         \
  }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

#define EXEC(name, parameters, arguments, path, environment)                              \
  SLUICE_EXPORT int name parameters noexcept {                                            \
    ExecState state;                                                                      \
    state.pass_ignored();                                                                 \
    return retrying_lists([&] { return REAL(name) arguments; }, path, argv, environment); \
  }
EXEC(execve, (const char* path, List argv, List env), (path, argv, env), path, env)
EXEC(execv, (const char* path, List argv), (path, argv), path, nullptr)
EXEC(execvp, (const char* file, List argv), (file, argv), file, nullptr)
EXEC(execvpe, (const char* file, List argv, List env), (file, argv, env), file, env)
EXEC(execveat, (int folder, const char* path, List argv, List env, int flags),
     (folder, path, argv, env, flags), path, env)
SLUICE_EXPORT int fexecve(int fd, List argv, List environment) noexcept {
  use_original(fd);
  ExecState state;
  state.pass_ignored();
  return retrying_lists([&] { return REAL(fexecve)(fd, argv, environment); }, nullptr, argv,
                        environment);
}

// execl() and relatives: in libc they call execve() internally, past the hook.
namespace {
size_t count_words(va_list words) {
  size_t count = 0;
  while (va_arg(words, const char*) != nullptr) ++count;
  return count;
}
// The list that libc would make of the arguments, `first` and the terminating nullptr included.
void list_words(char** list, const char* first, size_t count, va_list* words) {
  list[0] = const_cast<char*>(first);
  for (size_t i = 1; i <= count + 1; ++i) list[i] = va_arg(*words, char*);
}
}  // namespace

// `argv`: the list, on the hook's own stack; `words`: the arguments after it.
#define EXEC_WORDS(name, call)                                                \
  SLUICE_EXPORT int name(const char* path, const char* first, ...) noexcept { \
    va_list words;                                                            \
    va_start(words, first);                                                   \
    const size_t count = count_words(words);                                  \
    va_end(words);                                                            \
    auto** argv = static_cast<char**>(alloca((count + 2) * sizeof(char*)));   \
    va_start(words, first);                                                   \
    list_words(argv, first, count, &words);                                   \
    const int result = call;                                                  \
    va_end(words);                                                            \
    return result;                                                            \
  }
EXEC_WORDS(execl, execv(path, argv))
EXEC_WORDS(execlp, execvp(path, argv))
EXEC_WORDS(execle, execve(path, argv, va_arg(words, List)))

#define EXIT(name, except)                     \
  SLUICE_EXPORT void name(int status) except { \
    process_ends();                            \
    REAL(name)(status);                        \
    __builtin_unreachable();                   \
  }
EXIT(_exit, )
EXIT(_Exit, noexcept)
EXIT(quick_exit, noexcept)
