#include "preload/session/begin.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "preload/base/log.h"
#include "preload/base/own_stack.h"
#include "preload/base/process.h"
#include "preload/base/self.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/session/connection.h"
#include "preload/session/events.h"
#include "preload/session/identity.h"
#include "preload/session/launch.h"
#include "preload/session/record_settings.h"
#include "protocol/control.h"
#include "protocol/ring.h"

namespace sluice::preload {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kLeastStartNs = 1000 * kMillisecond, kMostStartNs = 10000 * kMillisecond;
constexpr size_t kMaxReason = 1024;  // bytes of a refusal's text that is printed

constinit bool g_warned = false;  // under the session's lock

// Prints a warning, once a process: what is wrong, and that the job continues.
void warn_once(const char* what) {
  if (!g_warned) say(LogLevel::kWarn, "%s; the job runs without pre-caching", what);
  g_warned = true;
}

bool start_optimizer() {
  char program[4096];
  struct stat about;
  if (!beside_library(program, sizeof program, "sluice-optimizer")) return false;
  if (sys::call(SYS_stat, sys::word(program), sys::word(&about)) != 0 &&
      !beside_library(program, sizeof program, "../bin/sluice-optimizer")) {
    return false;
  }
  const char* linger = g_settings.text[static_cast<size_t>(protocol::Option::kLinger)];
  const char* argv[] = {
      program, "--socket", g_place.socket, "--linger", linger != nullptr ? linger : "60", nullptr};
  const int error = launch_daemon(program, argv);
  if (error != 0) {
    char text[256];
    snprintf(text, sizeof text, "cannot start %.200s (errno %d)", program, error);
    warn_once(text);
    return false;
  }
  return true;
}

// Maps the session's memory and claims a slot. Closes the descriptor, which the mapping needs not.
bool enter_session(SessionKey* key) {
  protocol::Welcome welcome;
  if (g_answer.size != sizeof welcome || g_answer.fd < 0) return false;
  memcpy(&welcome, g_answer.body, sizeof welcome);
  const int fd = g_answer.fd;
  long memory = -EINVAL;
  struct stat about;
  if (welcome.size == sizeof(protocol::Shared) &&
      sys::call(SYS_fstat, fd, sys::word(&about)) == 0 &&
      static_cast<uint64_t>(about.st_size) == welcome.size) {
    memory =
        sys::call(SYS_mmap, 0, sizeof(protocol::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  sys::close(fd);
  if (sys::failed(memory)) return false;
  auto* shared = reinterpret_cast<protocol::Shared*>(memory);
  if (shared->header.magic != protocol::kSharedMagic ||
      shared->header.version != protocol::kVersion ||
      shared->header.slot_count != protocol::kSlots) {
    sys::call(SYS_munmap, memory, sizeof(protocol::Shared));
    return false;
  }
  *key = {welcome.session, welcome.token};
  publish_connection(shared, g_answer.peer);
  g_something_to_report.store(true, std::memory_order_relaxed);
  return true;
}

// Passes the file in which the job's samples are recorded, if any.
void ask_to_record(const SessionKey& key) {
  const int fd = open_recording();
  if (fd < 0) return;
  const protocol::Record body = {key.id, key.token};
  const Asked asked = ask_patiently(protocol::MessageKind::kRecord, &body, sizeof body, "", 0, fd);
  sys::close(fd);
  if (asked != Asked::kAnswered) return;
  if (g_answer.fd >= 0) sys::close(g_answer.fd);
  if (g_answer.kind != protocol::MessageKind::kRefused || g_answer.size > kMaxReason) return;
  say(is_root_process() ? LogLevel::kWarn : LogLevel::kInfo, "samples are not recorded: %.*s",
      static_cast<int>(g_answer.size), reinterpret_cast<const char*>(g_answer.body));
}

Asked hello(bool insist) {
  static constinit char options[8192];  // under g_session_lock; the caller's stack may be small
  const protocol::Hello body = {static_cast<uint32_t>(sys::pid()), 0};
  const size_t length = options_text(options, sizeof options);
  return ask_patiently(protocol::MessageKind::kHello, &body, sizeof body, options, length, -1,
                       insist ? insisted_ns() : answer_ns(), insist);
}

// Finds the folder of the optimizer's socket. False: it cannot be used.
bool find_folder(bool* exists, bool warns) {
  if (!find_place(&g_place)) {
    if (warns) warn_once("SLUICE_SOCKET is not an absolute path of at most 107 bytes");
    return false;
  }
  if (folder_is_ours(g_place.folder, exists) || !*exists) return true;
  char text[256];
  snprintf(text, sizeof text,
           "%.140s is not this user's alone (chmod 700 it, or name another with SLUICE_SOCKET)",
           g_place.folder);
  if (warns) warn_once(text);
  return false;
}

uint64_t start_ns() {
  const uint64_t twice = 2 * g_patience.most();
  return twice < kLeastStartNs ? kLeastStartNs : twice < kMostStartNs ? twice : kMostStartNs;
}

// Greets an optimizer that was just started, and has a second to listen, or as long as the patience
// is then: another that ends may still have the lock.
Asked hello_to_new() {
  const uint64_t deadline = sys::now_ns() + start_ns();
  uint64_t pause_ns = kMillisecond / 16;  // the start takes about one millisecond
  for (;;) {
    struct timespec pause = {0, static_cast<long>(pause_ns)};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
    pause_ns = pause_ns < kMillisecond ? 2 * pause_ns : kMillisecond;
    const Asked asked = hello(false);
    if (asked != Asked::kNoListener || sys::now_ns() >= deadline) return asked;
  }
}

// Prints why the optimizer's answer to the greeting begins no session.
void warn_about(Asked asked) {
  if (asked != Asked::kAnswered) {
    warn_once(asked == Asked::kOtherUser ? "the optimizer's socket belongs to another user"
              : asked == Asked::kBroken  ? "the optimizer speaks another version"
                                         : "the optimizer does not answer");
  } else if (g_answer.kind == protocol::MessageKind::kRefused) {
    char text[256];
    const size_t length = g_answer.size < sizeof text - 1 ? g_answer.size : sizeof text - 1;
    memcpy(text, g_answer.body, length);
    text[length] = '\0';
    warn_once(text);
  } else {
    warn_once("the optimizer does not answer");
  }
}

Asked begin_session_here(Wanted wanted, bool insist, SessionKey* key) {
  const bool starts = wanted == Wanted::kStarted;
  bool exists = false;
  if (!find_folder(&exists, starts)) return Asked::kBroken;
  Asked asked = exists ? hello(insist) : Asked::kNoListener;
  if (asked == Asked::kNoListener && starts) {
    if (!start_optimizer()) return Asked::kBroken;
    asked = hello_to_new();
  }
  if (asked == Asked::kAnswered && g_answer.kind == protocol::MessageKind::kWelcome) {
    if (enter_session(key)) {
      ask_to_record(*key);
      return Asked::kAnswered;
    }
    if (starts) warn_once("no memory for the session");
    return Asked::kBroken;
  }
  if (starts) warn_about(asked);
  if (g_answer.fd >= 0) sys::close(g_answer.fd);
  return asked == Asked::kAnswered ? Asked::kBroken : asked;
}

}  // namespace

Asked begin_session(Wanted wanted, bool insist, SessionKey* key) {
  Asked begun = Asked::kBroken;
  on_own_stack([&] { begun = begin_session_here(wanted, insist, key); });
  return begun;
}

}  // namespace sluice::preload
