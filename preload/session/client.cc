#include "preload/session/client.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "preload/base/lock.h"
#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/session/begin.h"
#include "preload/session/events.h"
#include "preload/session/exchange.h"
#include "protocol/ring_io.h"

namespace sluice::preload {

namespace {

constexpr uint64_t kMillisecond = 1000000;
// Times SLUICE_PATIENCE, and no less than by default: how long a question is waited for on which
// the optimizer works, in all and between two messages that it does.
constexpr uint64_t kWorkTimes = 10, kSilentTimes = 2;
constexpr uint64_t kGoodbyeDivisor = 3;  // of the patience: the last question, as the process ends
constexpr uint64_t kRetryNs = 1000 * kMillisecond;  // to the next attempt after the first failure
constexpr uint64_t kMaxRetryNs = 64000 * kMillisecond;  // after many: each waits twice as long
constexpr uint64_t kRefusedNs = 10000 * kMillisecond;   // without file questions after a refusal
constexpr uint32_t kMaxFiles = 256;

struct KnownFile {
  dev_t device;
  ino_t inode;
  FollowedFile answer;
};

// All below: written and read with g_session_lock held.
constinit Spinlock g_session_lock;
constinit SessionKey g_session;
constinit uint64_t g_not_before_ns = 0;
constinit uint64_t g_retry_ns = kRetryNs;
constinit uint64_t g_no_files_before_ns = 0;
constinit KnownFile g_files[kMaxFiles] = {};
constinit uint32_t g_file_count = 0;
constinit std::atomic<bool> g_follows_any{false};  // read by any thread

// Below: state of ask_at_length(), used with this lock held; other questions do not wait for it.
constinit Spinlock g_long_lock;
constinit Answer g_long_answer;
constinit Place g_long_place;
constinit uint32_t g_work_halved = 0;  // with each question not answered in time

// Sends the optimizer no questions for a while. This bounds the cost of attempts: they become rare,
// but after a moment of load on the machine the job still gets an optimizer.
void back_off() {
  g_not_before_ns = sys::now_ns() + g_retry_ns;
  g_retry_ns = g_retry_ns < kMaxRetryNs ? 2 * g_retry_ns : kMaxRetryNs;
}

// Whether no question may be asked now.
bool is_put_off() {
  const uint64_t now = sys::now_ns();
  return now < g_not_before_ns || g_patience.left(now, answer_ns()) == 0;
}

// 0, or a negative errno: no session, and why.
int enter(Wanted wanted, bool insist) {
  if (!may_connect()) return -ENOTCONN;
  const Asked asked = begin_session(wanted, insist, &g_session);
  if (asked != Asked::kAnswered) return asked == Asked::kLate ? -ETIMEDOUT : -ENOTCONN;
  g_file_count = 0;
  g_retry_ns = kRetryNs;
  g_not_before_ns = 0;
  g_no_files_before_ns = 0;
  return 0;
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
                    protocol::CheckpointMode mode, FollowedFile* out, bool again) {
  const protocol::File body = {g_session.id,
                               g_session.token,
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
      if (!again) count(protocol::ClientMetric::passed_no_optimizer);
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

// 0, or -EAGAIN, counted: no question may be asked now. REQUIRES: g_session_lock.
int refuse_put_off() {
  if (!is_put_off()) return 0;
  count(protocol::ClientMetric::passed_no_optimizer);
  return -EAGAIN;
}

// begin_question() before a question, end_question() after it. REQUIRES: g_session_lock.
int begin_question(const Question& question) {
  if (!question.insist) {
    if (const int error = refuse_put_off(); error != 0) return error;
  }
  if (session_is_lost()) {
    const int error = enter(question.start ? Wanted::kStarted : Wanted::kRunning, question.insist);
    if (error != 0) {
      if (question.start) back_off();
      return question.start ? -ENOTCONN : error;
    }
  }
  const uint64_t session[2] = {g_session.id, g_session.token};
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
  g_not_before_ns = 0;
  if (answer.kind != question.expected || answer.size != question.answer_size) return -EINVAL;
  if (question.answer_size != 0) memcpy(question.answer, answer.body, question.answer_size);
  return 0;
}

}  // namespace

int may_ask() {
  Locked locked(g_session_lock);
  return refuse_put_off();
}

int ask_in_session(const Question& question) {
  Locked locked(g_session_lock);
  const int error = begin_question(question);
  if (error != 0) return error;
  g_answer.lowest_fd = question.answer_fd != nullptr;
  const uint64_t most = question.insist ? insisted_ns() : answer_ns();
  const Asked asked = ask_patiently(question.kind, question.body, question.body_size,
                                    question.text != nullptr ? question.text : "",
                                    question.text_size, question.fd, most, question.insist);
  g_answer.lowest_fd = false;
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
    deadline_ns = now + g_patience.left(now, answer_ns());
  }
  if (error == 0) {
    g_long_answer.fd = -1;
    g_long_answer.heard_ns = sys::now_ns();
    const uint64_t patience = std::max(g_patience.most(), Patience::kMost);
    const Work work = {kWorkTimes * patience >> g_work_halved, kSilentTimes * patience};
    const Asked asked = ask(g_long_place.socket, deadline_ns, work, question.kind, question.body,
                            question.body_size, "", 0, question.fd, &g_long_answer);
    if (asked == Asked::kBusy && work.most_ns > 1) ++g_work_halved;
    Locked locked(g_session_lock);
    // Only the time since the optimizer's last message counts as wasted, not its time at work.
    const uint64_t silent = sys::now_ns() - g_long_answer.heard_ns;
    learn_from(asked, silent < answer_ns() ? silent : answer_ns());
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
                 protocol::CheckpointMode mode, FollowedFile* out, bool again) {
  Locked locked(g_session_lock);
  const bool lost = session_is_lost();
  if (const FollowedFile* known = known_file(about); known != nullptr && !lost) {
    *out = *known;
    return true;
  }
  if (is_put_off()) {
    if (!again) count(protocol::ClientMetric::passed_no_optimizer);
    return false;
  }
  if (lost && enter(Wanted::kStarted, false) != 0) {
    back_off();
    if (!again) count(protocol::ClientMetric::passed_no_optimizer);
    return false;
  }
  if (sys::now_ns() < g_no_files_before_ns) {
    count(protocol::ClientMetric::passed_refused);
    return false;
  }
  return ask_about_file(fd, about, path, mapped, mode, out, again);
}

bool may_be_followed_later() {
  Locked locked(g_session_lock);
  return session_is_lost() ? may_connect() : is_put_off();
}

void session_init() {
  const uint64_t most = g_settings.patience * kMillisecond;
  if (most != Patience::kMost) g_patience.set_most(most);  // else its page is not written
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
  const protocol::Bye body = {g_session.id, g_session.token};
  const uint64_t rest = g_patience.rest(sys::now_ns());
  const uint64_t goodbye = g_patience.most() / kGoodbyeDivisor;
  const Asked asked = ask_patiently(protocol::MessageKind::kBye, &body, sizeof body, "", 0, -1,
                                    rest < goodbye ? rest : goodbye, true);
  if (asked == Asked::kAnswered && g_answer.fd >= 0) sys::close(g_answer.fd);
}

}  // namespace sluice::preload
