// One question and one answer on the control socket, each pair on a connection of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/control.h"

namespace sluice::preload {

struct Answer {
  // Set by the caller: a received descriptor has the number that open() would give it.
  bool lowest_fd = false;
  protocol::MessageKind kind{};
  int fd = -1;            // received, owned by the caller
  size_t size = 0;        // of the body
  uint64_t heard_ns = 0;  // when the last kWorking message arrived
  int peer = 0;           // process id of the peer
  alignas(8) unsigned char body[protocol::kMaxPacket] = {};
};

enum class Asked : uint8_t {
  kAnswered,
  kNoListener,  // no socket, or no process listens on it
  kOtherUser,   // the folder, the socket or the peer belongs to another user
  kLate,        // the deadline passed
  kBusy,        // the peer is at work on the question, but for too long
  kBroken,      // not our protocol
};

// How long a peer may work on a question, in ns; 0: it must answer at once.
struct Work {
  uint64_t most_ns = 0;
  uint64_t silent_ns = 0;  // between two kWorking messages
};

// Connects to `path`, checks that the peer runs as this user, sends one message with up to one
// descriptor, waits for one answer until `deadline_ns` (sys::now_ns()). Each kWorking message gives
// the peer `work.silent_ns` for its next message, `work.most_ns` in all. Answers with another
// protocol version are kBroken. REQUIRES: all signals blocked.
Asked ask(const char* path, uint64_t deadline_ns, Work work, protocol::MessageKind kind,
          const void* body, size_t body_size, const void* text, size_t text_size, int fd,
          Answer* answer);

// True if `folder` is a directory (not a link), owned by this user, without access for others.
bool folder_is_ours(const char* folder, bool* exists);

}  // namespace sluice::preload
