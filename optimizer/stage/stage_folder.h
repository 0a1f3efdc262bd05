// Where copies are kept: a folder of our own on tmpfs, /dev/shm first, or on the disk that the user
// names. Held by a lock: a folder without its holder was left by an optimizer that was killed, and
// is removed by the next one.
#pragma once

#include <cstdint>
#include <string>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class StageFolder {
 public:
  StageFolder() = default;
  StageFolder(const StageFolder&) = delete;
  StageFolder& operator=(const StageFolder&) = delete;
  ~StageFolder() { clear(); }

  // `fallback`: a folder on a disk, empty if there is none. False: *reason is one line.
  bool create(const std::string& fallback, std::string* reason);
  // Removes what optimizers of this user left on memory file systems, and in `fallback`, and are no
  // more. Returns how many folders.
  static unsigned remove_leftovers(const std::string& fallback = {});

  // Removes the folder and all that is in it. fd() stays open until the end: a thread that hangs
  // may still use it. Idempotent.
  void clear();

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  // How many bytes the stage may hold, of which it holds `used`: others fail where it can do
  // without, and who writes to a mapping on a full file system dies of SIGBUS. 0 if that cannot be
  // known.
  uint64_t room(uint64_t used) const;
  // The same of a file system of `size` bytes (0: it has no limit), `free` of which are.
  static uint64_t room_in(uint64_t size, uint64_t free, uint64_t used);
  void remove(uint64_t name) const;

 private:
  bool create_in(const std::string& base, bool memory, std::string* reason);

  std::string path_;
  UniqueFd fd_, lock_;
};

}  // namespace sluice::optimizer
