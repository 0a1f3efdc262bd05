// The folder, the lock that makes an optimizer the only one there, and its listening socket.
#pragma once

#include <string>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

// Owns socket and lock file. The destructor removes both, and the folder if it is empty then.
class Seat {
 public:
  enum class Result { kTaken, kBusy, kRefused };

  Seat() = default;
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  ~Seat() { leave(); }

  // Makes the folder, takes the lock and listens on `path` (empty: the standard path). Waits up to
  // ten seconds for an optimizer that no longer listens and is about to end. kBusy: another
  // optimizer holds the lock. kRefused: *reason is one line.
  Result take(const std::string& path, std::string* reason);

  // Removes the socket and refuses further connections. The lock stays, so that no other optimizer
  // takes over before this one has ended.
  void stop_listening();

  // Stops listening and removes what take() made. Idempotent.
  void leave();

  // False once the socket was removed or replaced: no new client can reach this optimizer.
  bool still_ours() const;

  int listener() const { return listener_.get(); }
  const std::string& path() const { return path_; }
  const std::string& folder() const { return folder_; }

 private:
  bool make_folder(std::string* reason);
  bool no_listener() const;
  bool lock(bool* busy, std::string* reason);
  bool listen_on(std::string* reason);

  std::string path_, folder_, lock_path_;
  UniqueFd lock_, listener_;
  unsigned long long socket_inode_ = 0;
  bool made_socket_ = false;
  bool made_folder_ = false;
};

}  // namespace sluice::optimizer
