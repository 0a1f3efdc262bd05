// The program's side of the control socket (protocol/control.h): asks the optimizer of this
// user, memory cgroup and mount namespace. Nothing here waits longer than its deadline.
#pragma once

#include <chrono>
#include <string>

namespace sluice::cli {

inline constexpr std::chrono::milliseconds kAnswerDeadline{2000};
inline constexpr std::chrono::milliseconds kStopDeadline{5000};

enum class Answer {
  kGood,
  kNone,     // no optimizer listens there
  kProblem,  // one listens, or a stranger does, and it went wrong
};

struct Reply {
  Answer answer = Answer::kProblem;
  std::string text;  // kGood: what was asked for; else one line that says why
  std::string mend;  // what the user can do about it; may be empty
};

// The socket's path: `chosen`, or if that is empty the one that protocol/place.h names.
std::string socket_of(const std::string& chosen);

// Is there a folder for `socket` that nobody else can put a socket into? kNone: there is none.
Reply check_folder(const std::string& socket);

// The status as JSON text, not parsed.
Reply ask_status(const std::string& socket);

// Asks the optimizer to end and waits until it has closed its socket.
Reply stop_optimizer(const std::string& socket);

}  // namespace sluice::cli
