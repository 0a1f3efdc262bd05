#include "preload/session/client.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "preload/base/lock.h"
#include "preload/base/log.h"
#include "preload/base/own_stack.h"
#include "preload/base/process.h"
#include "preload/base/self.h"
#include "preload/session/events.h"
#include "preload/session/identity.h"
#include "preload/session/launch.h"
#include "preload/session/patience.h"
#include "preload/session/place.h"
#include "preload/session/record_settings.h"
#include "preload/session/wire.h"
#include "protocol/ring_io.h"

namespace sluice::preload {

namespace {

constexpr uint64_t kMillisecond = 1000000;
constexpr uint64_t kAnswerNs = 250 * kMillisecond;     // for one question
constexpr uint64_t kMostWorkNs = 5000 * kMillisecond;  // for one that the optimizer works on
constexpr uint64_t kGoodbyeNs = 150 * kMillisecond;    // for the last one, before the process ends
constexpr uint64_t kStartNs = 1000 * kMillisecond;     // for a new optimizer to listen
constexpr uint64_t kRetryNs = 1000 * kMillisecond;  // to the next attempt after the first failure
constexpr uint64_t kMaxRetryNs = 64000 * kMillisecond;  // after many: each waits twice as long
constexpr uint64_t kRefusedNs = 10000 * kMillisecond;   // without file questions after a refusal
constexpr uint32_t kMaxFiles = 256;
constexpr size_t kMaxReason = 1024;  // bytes of a refusal's text that is printed

struct KnownFile {
  dev_t device;
  ino_t inode;
  FollowedFile answer;
};

// All below: written and read with g_session_lock held.
constinit Spinlock g_session_lock;
constinit uint64_t g_session = 0;
constinit uint64_t g_token = 0;
constinit Patience g_patience;
constinit uint64_t g_not_before_ns = 0;
constinit uint64_t g_retry_ns = kRetryNs;
constinit uint64_t g_no_files_before_ns = 0;
constinit bool g_said = false;
constinit Place g_place;
constinit KnownFile g_files[kMaxFiles] = {};
constinit uint32_t g_file_count = 0;
constinit Answer g_answer;
constinit std::atomic<bool> g_follows_any{false};  // read by any thread

// Below: state of ask_at_length(), used with this lock held; other questions do not wait for it.
constinit Spinlock g_long_lock;
constinit Answer g_long_answer;
constinit Place g_long_place;
constinit uint64_t g_work_ns = kMostWorkNs;  // halved with each question not answered in time

// Prints a warning, once a process: what is wrong, and that the job continues.
void warn_once(const char* what) {
  if (!g_said) say(LogLevel::kWarn, "%s; the job runs without pre-caching", what);
  g_said = true;
}

// Sends the optimizer no questions for a while. This bounds the cost of attempts: they become rare,
// but after a moment of load on the machine the job still gets an optimizer.
void back_off() {
  g_not_before_ns = sys::now_ns() + g_retry_ns;
  g_retry_ns = g_retry_ns < kMaxRetryNs ? 2 * g_retry_ns : kMaxRetryNs;
}

// Adjusts g_patience after an answer or its absence. `waited_ns`: the time wasted if kLate.
void learn_from(Asked asked, uint64_t waited_ns) {
  const uint64_t now = sys::now_ns();
  if (asked == Asked::kLate) {
    g_patience.wasted(now, waited_ns);
  } else if (asked == Asked::kAnswered) {
    g_patience.answered(now);
  }
}

// Asks, and waits as long as the process's patience allows, at most `most`.
Asked ask_patiently(protocol::MessageKind kind, const void* body, size_t size, const void* text,
                    size_t text_size, int fd, uint64_t most = kAnswerNs, bool insist = false) {
  const uint64_t begin = sys::now_ns();
  g_answer.fd = -1;
  const uint64_t wait_ns = insist ? most : g_patience.left(begin, most);
  const Asked asked =
      ask(g_place.socket, begin + wait_ns, 0, kind, body, size, text, text_size, fd, &g_answer);
  learn_from(asked, sys::now_ns() - begin);
  return asked;
}

// Whether no question may be asked now.
bool is_put_off() {
  const uint64_t now = sys::now_ns();
  return now < g_not_before_ns || g_patience.left(now, kAnswerNs) == 0;
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
bool enter_session() {
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
  g_session = welcome.session;
  g_token = welcome.token;
  publish_connection(shared, g_answer.peer);
  g_file_count = 0;
  g_retry_ns = kRetryNs;
  g_no_files_before_ns = 0;
  g_something_to_report.store(true, std::memory_order_relaxed);
  return true;
}

// Passes the file in which the job's samples are recorded, if any.
void ask_to_record() {
  const int fd = open_recording();
  if (fd < 0) return;
  const protocol::Record body = {g_session, g_token};
  const Asked asked = ask_patiently(protocol::MessageKind::kRecord, &body, sizeof body, "", 0, fd);
  sys::close(fd);
  if (asked != Asked::kAnswered) return;
  if (g_answer.fd >= 0) sys::close(g_answer.fd);
  if (g_answer.kind != protocol::MessageKind::kRefused || g_answer.size > kMaxReason) return;
  say(is_root_process() ? LogLevel::kWarn : LogLevel::kInfo, "samples are not recorded: %.*s",
      static_cast<int>(g_answer.size), reinterpret_cast<const char*>(g_answer.body));
}

Asked hello() {
  static constinit char options[8192];  // under g_session_lock; the caller's stack may be small
  const protocol::Hello body = {static_cast<uint32_t>(sys::pid()), 0};
  const size_t length = options_text(options, sizeof options);
  return ask_patiently(protocol::MessageKind::kHello, &body, sizeof body, options, length, -1);
}

// Begins a session: finds an optimizer, or starts one and waits for it.
bool begin_session_here() {
  if (!find_place(&g_place)) {
    warn_once("SLUICE_SOCKET is not an absolute path of at most 107 bytes");
    return false;
  }
  bool exists = false;
  if (!folder_is_ours(g_place.folder, &exists) && exists) {
    char text[256];
    snprintf(text, sizeof text,
             "%.140s is not this user's alone (chmod 700 it, or name another with SLUICE_SOCKET)",
             g_place.folder);
    warn_once(text);
    return false;
  }
  Asked asked = exists ? hello() : Asked::kNoListener;
  if (asked == Asked::kNoListener) {
    if (!start_optimizer()) return false;
    const uint64_t deadline = sys::now_ns() + kStartNs;
    uint64_t pause_ns = kMillisecond / 16;  // the start takes about one millisecond
    do {
      struct timespec pause = {0, static_cast<long>(pause_ns)};
      sys::call(SYS_nanosleep, sys::word(&pause), 0);
      pause_ns = pause_ns < kMillisecond ? 2 * pause_ns : kMillisecond;
      asked = hello();
    } while (asked == Asked::kNoListener && sys::now_ns() < deadline);
  }
  if (asked == Asked::kAnswered && g_answer.kind == protocol::MessageKind::kWelcome) {
    if (enter_session()) {
      ask_to_record();
      return true;
    }
    warn_once("no memory for the session");
  } else if (asked == Asked::kAnswered && g_answer.kind == protocol::MessageKind::kRefused) {
    char text[256];
    const size_t length = g_answer.size < sizeof text - 1 ? g_answer.size : sizeof text - 1;
    memcpy(text, g_answer.body, length);
    text[length] = '\0';
    warn_once(text);
  } else {
    warn_once(asked == Asked::kOtherUser ? "the optimizer's socket belongs to somebody else"
              : asked == Asked::kBroken  ? "the optimizer speaks another version"
                                         : "the optimizer does not answer");
  }
  if (g_answer.fd >= 0) sys::close(g_answer.fd);
  return false;
}

bool begin_session() {
  bool begun = false;
  on_own_stack([&] { begun = begin_session_here(); });
  return begun;
}

FollowedFile* known_file(const struct stat& about) {
  for (uint32_t i = 0; i < g_file_count; ++i) {
    if (g_files[i].device == about.st_dev && g_files[i].inode == about.st_ino) {
      return &g_files[i].answer;
    }
  }
  return nullptr;
}

// Whether another process of this session lives, which will end it.
bool others_live(const protocol::Shared& shared) {
  for (const protocol::Slot& slot : shared.slots) {
    const uint32_t pid = slot.pid.load(std::memory_order_relaxed);
    if (pid == 0 || &slot == g_connection.load()->slot.load(std::memory_order_relaxed)) continue;
    if (sys::call(SYS_kill, pid, 0) == 0) return true;
  }
  return false;
}

bool ask_about_file(int fd, const struct stat& about, const char* path, bool mapped,
                    protocol::CheckpointMode mode, FollowedFile* out) {
  const protocol::File body = {g_session,
                               g_token,
                               about.st_dev,
                               about.st_ino,
                               static_cast<uint64_t>(about.st_size),
                               mapped ? 1U : 0U,
                               static_cast<uint32_t>(mode)};
  const size_t length = strnlen(path, protocol::kMaxPath);
  const Asked asked =
      ask_patiently(protocol::MessageKind::kFile, &body, sizeof body, path, length, fd);
  protocol::FileKnown known;
  if (asked != Asked::kAnswered || g_answer.kind != protocol::MessageKind::kFileKnown ||
      g_answer.size != sizeof known) {
    if (asked == Asked::kAnswered) {  // the optimizer lives, but follows no more files
      count(protocol::ClientMetric::passed_refused);
      g_no_files_before_ns = sys::now_ns() + kRefusedNs;
    } else {
      count(protocol::ClientMetric::passed_no_optimizer);
      back_off();
    }
    return false;
  }
  memcpy(&known, g_answer.body, sizeof known);
  const uint32_t number = g_connection.load(std::memory_order_relaxed)->number;
  *out = {known.file | number << kFileIdBits, known.flags, known.distance};
  if (g_file_count < kMaxFiles) g_files[g_file_count++] = {about.st_dev, about.st_ino, *out};
  count(protocol::ClientMetric::files_followed);
  g_follows_any.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace

bool follows_any() { return g_follows_any.load(std::memory_order_relaxed); }

namespace {

// begin_question() before a question, end_question() after it. REQUIRES: g_session_lock.
int begin_question(const Question& question) {
  if (!question.insist && is_put_off()) {
    count(protocol::ClientMetric::passed_no_optimizer);
    return -EAGAIN;
  }
  if (session_is_lost() && (!may_connect() || !begin_session())) {
    back_off();
    return -ENOTCONN;
  }
  const uint64_t session[2] = {g_session, g_token};
  memcpy(question.body, session, sizeof session);
  return 0;
}

int end_question(const Question& question, Asked asked, const Answer& answer) {
  const bool right = asked == Asked::kAnswered && answer.kind == question.expected;
  if (answer.fd >= 0) {
    if (right && question.answer_fd != nullptr) {
      *question.answer_fd = answer.fd;
    } else {
      sys::close(answer.fd);
    }
  }
  if (asked != Asked::kAnswered) {
    count(protocol::ClientMetric::passed_no_optimizer);
    if (asked == Asked::kLate) back_off();
    return -ETIMEDOUT;
  }
  g_retry_ns = kRetryNs;
  if (answer.kind != question.expected || answer.size != question.answer_size) return -EINVAL;
  if (question.answer_size != 0) memcpy(question.answer, answer.body, question.answer_size);
  return 0;
}

}  // namespace

int ask_in_session(const Question& question) {
  Locked locked(g_session_lock);
  const int error = begin_question(question);
  if (error != 0) return error;
  const Asked asked = ask_patiently(question.kind, question.body, question.body_size,
                                    question.text != nullptr ? question.text : "",
                                    question.text_size, question.fd, kAnswerNs, question.insist);
  return end_question(question, asked, g_answer);
}

int ask_at_length(const Question& question) {
  const sys::SignalsBlocked blocked;
  if (!g_long_lock.try_lock()) return -EBUSY;
  uint64_t deadline_ns = 0;
  int error = 0;
  {
    Locked locked(g_session_lock);
    error = begin_question(question);
    g_long_place = g_place;
    const uint64_t now = sys::now_ns();
    deadline_ns = now + g_patience.left(now, kAnswerNs);
  }
  if (error == 0) {
    g_long_answer.fd = -1;
    g_long_answer.heard_ns = sys::now_ns();
    const Asked asked = ask(g_long_place.socket, deadline_ns, g_work_ns, question.kind,
                            question.body, question.body_size, "", 0, question.fd, &g_long_answer);
    if (asked == Asked::kBusy) g_work_ns /= 2;
    Locked locked(g_session_lock);
    // Only the time since the optimizer's last message counts as wasted, not its time at work.
    const uint64_t silent = sys::now_ns() - g_long_answer.heard_ns;
    learn_from(asked, silent < kAnswerNs ? silent : kAnswerNs);
    error = end_question(question, asked, g_long_answer);
  }
  g_long_lock.unlock();
  return error;
}

bool follows(const struct stat& about, FollowedFile* out) {
  if (g_connection.load(std::memory_order_acquire) == nullptr) return false;
  // Not lock(): an open() must not wait for another thread's question.
  const sys::SignalsBlocked blocked;
  if (!g_session_lock.try_lock()) return false;
  const FollowedFile* known = known_file(about);
  const bool live = known != nullptr && !session_is_lost();
  if (live) *out = *known;
  g_session_lock.unlock();
  return live;
}

bool follow_file(int fd, const struct stat& about, const char* path, bool mapped,
                 protocol::CheckpointMode mode, FollowedFile* out) {
  Locked locked(g_session_lock);
  const bool lost = session_is_lost();
  if (const FollowedFile* known = known_file(about); known != nullptr && !lost) {
    *out = *known;
    return true;
  }
  if (is_put_off()) {
    count(protocol::ClientMetric::passed_no_optimizer);
    return false;
  }
  if (lost && (!may_connect() || !begin_session())) {
    back_off();
    count(protocol::ClientMetric::passed_no_optimizer);
    return false;
  }
  if (sys::now_ns() < g_no_files_before_ns) {
    count(protocol::ClientMetric::passed_refused);
    return false;
  }
  return ask_about_file(fd, about, path, mapped, mode, out);
}

void session_after_fork() {
  g_session_lock.reset();
  g_long_lock.reset();
  connection_after_fork();
}

void end_session() {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  if (connection == nullptr) return;
  Locked locked(g_session_lock);
  if (session_is_lost() || others_live(*connection->shared)) return;
  const protocol::Bye body = {g_session, g_token};
  if (ask_patiently(protocol::MessageKind::kBye, &body, sizeof body, "", 0, -1, kGoodbyeNs) ==
          Asked::kAnswered &&
      g_answer.fd >= 0) {
    sys::close(g_answer.fd);
  }
}

}  // namespace sluice::preload
