// One question and one answer on the control socket, on a descriptor that exists for no longer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/control.h"

namespace sluice::preload {

struct Answer {
  protocol::MessageKind kind{};
  int fd = -1;            // received, owned by the caller
  size_t size = 0;        // of the body
  uint64_t heard_ns = 0;  // when somebody said last that it is at work
  int peer = 0;           // process id of who answered
  alignas(8) unsigned char body[protocol::kMaxPacket] = {};
};

enum class Asked : uint8_t {
  kAnswered,
  kNobody,   // no socket, or nobody behind it
  kForeign,  // the folder, the socket or the peer belongs to somebody else
  kLate,     // the deadline passed
  kBusy,     // it is at work on the question, but for too long
  kBroken,   // not our protocol
};

// Connects to `path`, checks that the peer is this user, sends one message with up to one
// descriptor, waits for one answer until `deadline_ns` (sys::now_ns()). Whoever says that it is at
// work on it (kWorking) has a second for the next word, and `work_ns` in all. Answers with another
// protocol version are kBroken. REQUIRES: all signals blocked.
Asked ask(const char* path, uint64_t deadline_ns, uint64_t work_ns, protocol::MessageKind kind,
          const void* body, size_t body_size, const void* text, size_t text_size, int fd,
          Answer* answer);

// True if `folder` is a real folder, ours, and closed to others.
bool folder_is_ours(const char* folder, bool* exists);

}  // namespace sluice::preload
