// The session's shared memory as this process has it, and whether an optimizer is still behind it.
// Everything here is a few loads, and at times a system call; async-signal-safe unless it says
// otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "protocol/ring.h"

namespace sluice::preload {

// A session: its memory, this process's slot in it, and a number that is part of every file id
// of that session. A process has more than one only if its optimizer died; the memory of the
// old one stays mapped, since a handler may be writing to it.
struct Connection {
  protocol::Shared* shared = nullptr;          // constant once published
  std::atomic<protocol::Slot*> slot{nullptr};  // nullptr: no slot was free
  uint32_t number = 0;
};

// The current one, nullptr while there is none. Read in the fault handler.
extern std::atomic<Connection*> g_connection;

inline constexpr uint32_t kMaxConnections = 16;
// All that this process ever had: kMaxConnections entries, of which those with `shared` are valid.
const Connection* connections();

// FollowedFile::file is the optimizer's id with the connection's number above these bits.
inline constexpr uint32_t kFileIdBits = 24;

// Whether the optimizer of the current session died or ended the session; true without a session.
// Any thread.
bool session_is_lost();
// Whether the optimizer died without ending the session: it was killed. Any thread;
// async-signal-safe.
bool optimizer_died();
// Whether the optimizer uses events that say which sample is being read. Any thread.
bool samples_wanted();
// Whether the optimizer wants to know which pages of mapped files samples touch. Any thread.
bool pages_wanted();
// Whether events of this file reach an optimizer. Any thread.
bool session_of_file_lives(uint32_t file);

// An id that the optimizer assigned (file, dataset), as events carry it; see kFileIdBits.
uint32_t in_session(uint32_t id);

// A new session's memory, of an optimizer with that pid, is what events go to from now on. The
// mapping is not taken down any more. REQUIRES: the caller holds the session's lock;
// may_connect().
void publish_connection(protocol::Shared* shared, int optimizer_pid);
bool may_connect();  // false: the process has had as many sessions as it may
// In a fork's child: its own slot, unless it is in another pid or time namespace.
void connection_after_fork();

}  // namespace sluice::preload
