// A descriptor that the library opens for a short time. The job may close all descriptors and reuse
// the number meanwhile: ours() checks for that before the number is used or closed. Any thread, not
// from a signal handler.
#pragma once

#include <sys/stat.h>

#include "preload/base/sys.h"

namespace sluice::preload {

class OwnDescriptor {
 public:
  // Takes the result of a system call, which may be a negative errno.
  explicit OwnDescriptor(long fd) : fd_(fd) {
    struct stat about;
    if (sys::failed(fd_) || sys::call(SYS_fstat, fd_, sys::word(&about)) != 0) return;
    device_ = about.st_dev;
    inode_ = about.st_ino;
  }
  ~OwnDescriptor() {
    if (ours()) sys::close(number());
  }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  // Negative: no descriptor; the errno of the failed call.
  int number() const { return static_cast<int>(fd_); }
  uint64_t inode() const { return inode_; }
  bool ours() const {
    struct stat about;
    return !sys::failed(fd_) && sys::call(SYS_fstat, fd_, sys::word(&about)) == 0 &&
           about.st_dev == device_ && about.st_ino == inode_;
  }

 private:
  const long fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace sluice::preload
