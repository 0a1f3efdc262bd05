// The folder that holds the copies: on tmpfs, /dev/shm first, or on a disk that the user names. The
// optimizer that owns it holds a lock: an unlocked folder was left by one that was killed, and the
// next optimizer removes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

// The file name of a copy, zero-terminated.
std::array<char, 17> copy_name(uint64_t name);

class StageFolder {
 public:
  StageFolder() = default;
  StageFolder(const StageFolder&) = delete;
  StageFolder& operator=(const StageFolder&) = delete;
  ~StageFolder() { clear(); }

  // `fallback`: a folder on a disk, empty if there is none. False: *reason is one line.
  bool create(const std::string& fallback, std::string* reason);
  // Removes folders that ended optimizers of this user left on memory file systems and in
  // `fallback`. Returns how many.
  static unsigned remove_leftovers(const std::string& fallback = {});

  // Removes the folder and its files. fd() stays open until destruction, since a thread that hangs
  // may still use it. Idempotent.
  void clear();

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  // How many bytes the stage may take, of which it takes `used`. Leaves room for other processes:
  // they fail on a full file system, with SIGBUS on a write to a mapping, where the stage merely
  // stages less. 0 if unknown.
  uint64_t room(uint64_t used) const;
  // The same for a file system of `size` bytes (0: no limit), of which `free` are free.
  static uint64_t room_in(uint64_t size, uint64_t free, uint64_t used);
  void remove(uint64_t name) const;
  UniqueFd open_copy(uint64_t name) const;  // for reading; invalid: there is no such copy

 private:
  bool create_in(const std::string& base, bool memory, std::string* reason);

  std::string path_;
  UniqueFd fd_, lock_;
};

}  // namespace sluice::optimizer
