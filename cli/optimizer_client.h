// The client side of the control socket (protocol/control.h): requests to the optimizer of this
// user, memory cgroup and mount namespace. No call waits longer than its deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

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

// The reason with how to fix it, on one line.
std::string problem_text(const Reply& reply);

// The socket's path: `chosen`, or if that is empty the one from protocol/place.h.
std::string socket_of(const std::string& chosen);

// Whether the folder of `socket` is safe from sockets of other users. kNone: there is no folder.
Reply check_folder(const std::string& socket);

// The sockets in the default folder, sorted: of this user's optimizers in all memory cgroups. Some
// may be left over from optimizers that were killed. Answers as check_folder.
inline constexpr size_t kMostSockets = 64;  // as many are returned
Reply sockets_of_user(std::vector<std::string>* sockets);

// The status as JSON text, not parsed.
Reply ask_status(const std::string& socket);

// Requests the optimizer to exit and waits until it has closed its socket.
Reply stop_optimizer(const std::string& socket);

}  // namespace sluice::cli
