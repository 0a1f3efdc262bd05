// The client side of the control socket (protocol/control.h): requests to the optimizer of this
// user, memory cgroup and mount namespace. No call waits longer than its deadline.
#pragma once

#include <chrono>
#include <string>

namespace sluice::cli {

inline constexpr std::chrono::milliseconds kAnswerDeadline{2000};
inline constexpr std::chrono::milliseconds kStopDeadline{5000};

enum class Answer {
  kGood,
  kNone,     // no optimizer listens there
  kProblem,  // an optimizer or another program listens, and something failed
};

struct Reply {
  Answer answer = Answer::kProblem;
  std::string text;  // kGood: the result; else one line with the reason
  std::string mend;  // how the user can fix it; may be empty
};

// The socket's path: `chosen`, or if that is empty the one from protocol/place.h.
std::string socket_of(const std::string& chosen);

// Whether the folder of `socket` is safe from sockets of other users. kNone: there is no folder.
Reply check_folder(const std::string& socket);

// The status as JSON text, not parsed.
Reply ask_status(const std::string& socket);

// Requests the optimizer to exit and waits until it has closed its socket.
Reply stop_optimizer(const std::string& socket);

}  // namespace sluice::cli
