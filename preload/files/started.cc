#include "preload/files/started.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "preload/base/keep_errno.h"
#include "preload/base/lock.h"
#include "preload/base/own_descriptor.h"
#include "preload/base/own_stack.h"
#include "preload/base/process.h"
#include "preload/base/thread_state.h"
#include "preload/data/slow_mounts.h"
#include "preload/samples/memory_file.h"
#include "preload/session/client.h"
#include "preload/stage/lookup.h"
#include "protocol/control.h"
#include "protocol/path_hash.h"

namespace sluice::preload {

constinit std::atomic<bool> g_start_recorded{true};
constinit std::atomic<bool> g_start_asked{false};
constinit std::atomic<uint64_t> g_start_began{0};

namespace {

// Slow opens, and the time that they took, before the optimizer is asked for what an earlier start
// opened: starting it takes a job some milliseconds, more than a short one may have to gain.
constexpr uint32_t kSlow = 4;
constexpr uint64_t kSlowNs = 30'000'000;
// Files, and the time that their opens took; less is not worth a list.
constexpr uint32_t kFewest = 16;
constexpr uint64_t kLeastNs = 100'000'000;
constexpr uint32_t kMost = 8192;      // files
constexpr off_t kLargest = 16 << 20;  // bytes; larger files that are read are data
constexpr size_t kKeyBytes = 1024;
// Files that took long to open and were on a local disk, before any other: the program's are there,
// and the machine is slow. Each costs a system call.
constexpr uint32_t kMostLocal = 40;
constexpr uint32_t kKeyWords = 3;  // of the command line

// Absolute paths, each ended by a NUL. REQUIRES: g_lock.
constinit Spinlock g_lock;
constinit char g_paths[1 << 20] = {};
constinit size_t g_used = 0;
constinit uint32_t g_count = 0, g_slow = 0;
constinit uint64_t g_slow_ns = 0;  // that slow opens took
constinit bool g_due = false;      // the optimizer has been, or is being, asked

constinit std::atomic<bool> g_full{false};   // any thread
constinit std::atomic<uint32_t> g_local{0};  // of kMostLocal; any thread

bool wanted() {
  const char* places = g_settings.text[static_cast<size_t>(protocol::Option::kPlaces)];
  return g_settings.prefetch && !g_settings.off && places != nullptr && strcmp(places, "off") != 0;
}

// Reads a file of /proc into `out` and ends it with a NUL. Its bytes.
size_t read_proc(const char* path, char* out, size_t size) {
  const OwnDescriptor fd(sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_RDONLY | O_CLOEXEC));
  size_t used = 0;
  while (fd.ours() && used + 1 < size) {
    const long got =
        sys::call(SYS_read, fd.number(), sys::word(out + used), static_cast<long>(size - 1 - used));
    if (got == -EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  out[used] = '\0';
  return used;
}

// What identifies the command: its executable and first words, each on a line.
size_t command_key(char* out) {
  const long length = sys::call(SYS_readlink, sys::word("/proc/self/exe"), sys::word(out),
                                static_cast<long>(kKeyBytes / 2 - 2 * kKeyWords));
  if (length <= 0) return 0;
  auto used = static_cast<size_t>(length);
  char words[kKeyBytes / 2];
  const size_t got = read_proc("/proc/self/cmdline", words, sizeof words);
  const char* word = words;
  for (uint32_t i = 0; i < kKeyWords && word < words + got; ++i) {
    const size_t size = strlen(word);
    out[used++] = '\n';
    memcpy(out + used, word, size + 1);
    used += size;
    word += size + 1;
  }
  return used;
}

// `slow_ns`: how long the open took, 0 if it was not slow. True once, when the optimizer is to be
// asked.
bool add(const StagePath& path, uint64_t slow_ns) {
  const Locked locked(g_lock);
  if (g_count >= kMost || sizeof g_paths - g_used < protocol::kStagePath) {
    g_full.store(true, std::memory_order_relaxed);
    return false;
  }
  if (const Connection* connection = g_connection.load(std::memory_order_acquire)) {
    connection->shared->header.start_opened.store(protocol::path_hash(path.text, path.length),
                                                  std::memory_order_relaxed);
  }
  memcpy(g_paths + g_used, path.text, path.length);
  g_used += path.length;
  g_paths[g_used++] = '\0';
  __atomic_store_n(&g_count, g_count + 1, __ATOMIC_RELAXED);
  g_slow += slow_ns != 0 ? 1 : 0;
  g_slow_ns += slow_ns;
  if (g_due || g_slow < kSlow || g_slow_ns < kSlowNs) return false;
  return g_due = true;
}

void ask() {
  char key[kKeyBytes];
  const size_t length = command_key(key);
  protocol::Start body = {};
  if (length == 0) return;
  ask_in_session({.kind = protocol::MessageKind::kStart,
                  .expected = protocol::MessageKind::kDone,
                  .body = &body,
                  .body_size = sizeof body,
                  .text = key,
                  .text_size = length});
}

// The files of which code is mapped: libraries that others depend on were opened by no hook.
void add_mapped(MemoryFile* memory, uint32_t* count) {
  const OwnDescriptor fd(
      sys::call(SYS_openat, AT_FDCWD, sys::word("/proc/self/maps"), O_RDONLY | O_CLOEXEC));
  char text[8192];
  size_t used = 0;
  for (;;) {
    const long got = fd.ours() ? sys::call(SYS_read, fd.number(), sys::word(text + used),
                                           static_cast<long>(sizeof text - used))
                               : 0;
    if (got == -EINTR) continue;
    if (got <= 0) return;
    used += static_cast<size_t>(got);
    char* line = text;
    while (char* end =
               static_cast<char*>(memchr(line, '\n', used - static_cast<size_t>(line - text)))) {
      *end = '\0';
      const char* path = strchr(line, '/');
      if (path != nullptr && strstr(line, " r-xp ") != nullptr && *count < 2 * kMost) {
        if (!memory->add(path, strlen(path) + 1)) return;
        ++*count;
      }
      line = end + 1;
    }
    used -= static_cast<size_t>(line - text);
    memmove(text, line, used);
    if (used == sizeof text) return;  // no line is that long
  }
}

// Not inlined: open() may be called where the stack is small.
__attribute__((noinline)) void note_file(int folder, const char* path, uint64_t slow_ns) {
  StagePath absolute;
  if (!absolute_path(folder, path, &absolute) || !add(absolute, slow_ns)) return;
  g_start_asked.store(true, std::memory_order_relaxed);
  ask();
}

}  // namespace

bool StartWatch::is_over() {
  return g_full.load(std::memory_order_relaxed) ||
         sys::now_ns() - g_start_began.load(std::memory_order_relaxed) > kLongestNs;
}

__attribute__((noinline)) void StartWatch::note(int fd, int folder, const char* path,
                                                uint64_t took_ns) {
  if (t_state.samples_begun != 0 || in_vfork_child()) return;
  const KeepErrno keep;
  if (process_is_new()) process_after_fork();
  if (!g_start_recorded.load(std::memory_order_relaxed)) return;
  if (is_over()) {
    on_own_stack(start_ends);
    return;
  }
  struct stat about;
  if (sys::call(SYS_fstat, fd, sys::word(&about)) != 0) return;
  if (!on_slow_mount(fd, about)) {
    if (g_local.fetch_add(1, std::memory_order_relaxed) + 1 >= kMostLocal &&
        !g_start_asked.load(std::memory_order_relaxed)) {
      g_start_recorded.store(false, std::memory_order_relaxed);
    }
    return;
  }
  if (!S_ISREG(about.st_mode) || about.st_size >= kLargest) return;
  if (wanted()) note_file(folder, path, took_ns >= kLongNs ? took_ns : 0);
}

void start_loads(const char* path) {
  if (!g_start_recorded.load(std::memory_order_relaxed) || path == nullptr || *path != '/') return;
  // Of a program that has opened nothing on slow storage so far, libraries are not there either.
  if (__atomic_load_n(&g_count, __ATOMIC_RELAXED) == 0) return;
  if (in_vfork_child()) return;
  const KeepErrno keep;
  if (process_is_new()) process_after_fork();
  if (!g_start_recorded.load(std::memory_order_relaxed) || !wanted()) return;
  note_file(AT_FDCWD, path, 0);
}

void start_after_fork() { g_start_recorded.store(false, std::memory_order_relaxed); }

// A child that no hook saw forked has adopted itself before (process_is_new()).
void start_ends() {
  if (!g_start_recorded.exchange(false, std::memory_order_relaxed)) return;
  if (in_vfork_child()) return;
  const KeepErrno keep;
  size_t used = 0;
  uint32_t count = 0;
  uint64_t slow_ns = 0;
  {
    const Locked locked(g_lock);
    used = g_used;
    count = g_count;
    slow_ns = g_slow_ns;
  }
  if (count < kFewest || slow_ns < kLeastNs || !wanted()) return;
  char key[kKeyBytes];
  const size_t length = command_key(key);
  MemoryFile memory;
  if (length == 0 || !memory.add(key, length) || !memory.add("", 1) ||
      !memory.add(g_paths, used)) {  // nothing is added any more
    return;
  }
  add_mapped(&memory, &count);
  protocol::Samples about = {};
  about.count = count;
  send_samples(protocol::MessageKind::kStarted, about, memory);
}

}  // namespace sluice::preload
