// The job's end of the session: its shared memory, its slot, and what the optimizer answered.
//
// Nothing here waits without a deadline, and all waiting of a process together is bounded
// (patience.h). An answer that comes too late puts all questions off for a second, the next one for
// two, and so on; the first that comes in time ends that. An optimizer that says that it is at work
// is waited for beside that, at length, with less patience each time that it does not come to an
// end.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "protocol/control.h"
#include "protocol/ring.h"

namespace sluice::preload {

struct FollowedFile {
  uint32_t file = 0;  // for events; see kFileIdBits
  uint32_t flags = 0;
  uint64_t distance = 0;  // bytes
};

// A session: its memory, this process's slot in it, and a number that is part of every file id
// that came with it. A process has more than one only if its optimizer died; the memory of the
// old one stays, since a handler may be writing to it.
struct Connection {
  protocol::Shared* shared = nullptr;          // constant once published
  std::atomic<protocol::Slot*> slot{nullptr};  // nullptr: all were taken
  uint32_t number = 0;
};

// The current one, nullptr while there is none. Read in the fault handler.
extern std::atomic<Connection*> g_connection;

inline constexpr uint32_t kMaxConnections = 16;
// All that this process ever had; those with `shared` set count.
const Connection* connections();

// FollowedFile::file is the optimizer's id with the connection's number above these bits.
inline constexpr uint32_t kFileIdBits = 24;

// Hands a file to the optimizer, which is started if need be. False: pass through (counted).
// `fd` stays the caller's. Not from a signal handler; any thread; blocks every signal meanwhile.
bool follow_file(int fd, const struct stat& about, const char* path, bool mapped,
                 protocol::CheckpointMode mode, FollowedFile* out);

// Whether the current session follows the file already, and as what. Asks nobody; otherwise as
// follow_file.
bool follows(const struct stat& about, FollowedFile* out);

// Whether this process ever followed a file. Any thread.
bool follows_any();

// Whether the optimizer of the current session is gone, or has ended it; true without a session.
// Any thread.
bool session_is_lost();
// Whether it went without ending the session: it was killed. Any thread; async-signal-safe.
bool optimizer_died();
// Whether somebody gains by knowing which sample is being read. Any thread.
bool samples_wanted();
// Whether it wants to know which pages of mapped files samples touch. Any thread.
bool pages_wanted();
// Whether events of this file reach an optimizer. Any thread.
bool session_of_file_lives(uint32_t file);

// A question about the current session, which is begun if there is none. `body` begins with the
// session's id and token, 64 bits each, which are filled in; `fd` stays the caller's, -1 is none.
struct Question {
  protocol::MessageKind kind{};
  protocol::MessageKind expected{};  // of the answer
  void* body = nullptr;
  size_t body_size = 0;
  const char* text = nullptr;
  size_t text_size = 0;
  int fd = -1;
  void* answer = nullptr;    // gets the answer's body
  size_t answer_size = 0;    // exactly
  int* answer_fd = nullptr;  // gets the answer's descriptor, the caller's then, or stays as it was
  bool insist = false;       // asked and waited for whatever questions before have cost
};
// 0, or a negative errno: nobody there, refused, or late. Not from a signal handler; any thread;
// blocks every signal meanwhile.
int ask_in_session(const Question& question);
// The same of what may take seconds: for as long as the optimizer says that it is at work on it,
// and five seconds at most, while other threads ask and open files as usual. -EBUSY: another thread
// is waiting for such an answer. `text` is not sent.
int ask_at_length(const Question& question);
// An id of the optimizer's (file, dataset) as events carry it; see kFileIdBits.
uint32_t in_session(uint32_t id);

// Claims a slot of the inherited session for a fork's child. Not for one in a pid or time namespace
// of its own, whose numbers and times would mean something else to the optimizer: there and in its
// children the session counts as lost. Async-signal-safe.
void session_after_fork();

// Last words before the process ends: releases the optimizer's descriptors so that the caller
// can unmount at once. Bounded.
void say_goodbye();

}  // namespace sluice::preload
