// A descriptor that is ours for a moment. A job may close everything and open files of its own
// under our number meanwhile: it is looked at before it is used or closed. Any thread, not from a
// signal handler.
#pragma once

#include <sys/stat.h>

#include "preload/base/sys.h"

namespace sluice::preload {

class OwnDescriptor {
 public:
  // Takes what a system call returned, which may be a negative errno.
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

  // Negative: there is none, and this is why.
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
