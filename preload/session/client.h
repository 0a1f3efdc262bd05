// The job's end of the session: its shared memory, its slot, and what the optimizer answered.
//
// Nothing here waits without a deadline, and the total waiting of a process is bounded
// (patience.h, SLUICE_PATIENCE). After an answer that is late no question is sent for a second,
// after the next for two, and so on; the first answer in time ends that. An optimizer that reports
// that it is at work on a question gets more time (ask_at_length()), and half as much after each
// question that it does not finish.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "preload/session/connection.h"
#include "protocol/control.h"

namespace sluice::preload {

struct FollowedFile {
  uint32_t file = 0;  // for events; see kFileIdBits
  uint32_t flags = 0;
  uint64_t distance = 0;  // bytes
};

// Passes a file to the optimizer, which is started if need be. False: pass through (counted).
// The caller still owns `fd`. `again`: this was asked before, so that a want of an answer is
// counted already. Not from a signal handler; any thread; blocks every signal meanwhile.
bool follow_file(int fd, const struct stat& about, const char* path, bool mapped,
                 protocol::CheckpointMode mode, FollowedFile* out, bool again = false);

// After follow_file() has returned false: whether it was for want of an answer, so that asking
// later may help. Any thread, as follow_file().
bool may_be_followed_later();

// Whether the current session follows the file already, and as what. Sends no question; otherwise
// as follow_file().
bool follows(const struct stat& about, FollowedFile* out);

// Whether this process ever followed a file. Any thread.
bool follows_any();

// A question within the current session, which is begun if there is none. `body` begins with the
// session's id and token, 64 bits each, which are filled in. The caller owns `fd`; -1 is none.
struct Question {
  protocol::MessageKind kind{};
  protocol::MessageKind expected{};  // of the answer
  void* body = nullptr;
  size_t body_size = 0;
  const char* text = nullptr;
  size_t text_size = 0;
  int fd = -1;
  void* answer = nullptr;    // receives the answer's body
  size_t answer_size = 0;    // exactly
  int* answer_fd = nullptr;  // receives the answer's descriptor, to be owned by the caller, if any
  bool insist = false;       // ask and wait regardless of g_patience and of late answers before
  bool start = true;         // without an optimizer: start one
};
// 0, or -EAGAIN, which a question would be answered with now that nothing makes ask: before work
// that only a question needs. Counts as such a question. Any thread, as ask_in_session().
int may_ask();
// 0, or a negative errno: no optimizer, refused, or late. Not from a signal handler; any thread;
// blocks every signal meanwhile.
int ask_in_session(const Question& question);
// The same for a question that may take seconds to answer: waits while the optimizer reports that
// it is at work on it, ten times its patience (5 s) at most. Other threads ask and open files
// meanwhile. -EBUSY: another thread is waiting for such an answer. `text` is not sent.
int ask_at_length(const Question& question);

void session_init();  // constructor only; the settings have been read
// Claims a slot of the inherited session for a fork's child. Not for a child in another pid or time
// namespace, where pids and times differ from the optimizer's: in it and in its children the
// session counts as lost. Async-signal-safe.
void session_after_fork();

// Before the process ends: ends the session, so that the optimizer closes the job's files and the
// caller can unmount at once. Waits for a bounded time.
void end_session();

}  // namespace sluice::preload
