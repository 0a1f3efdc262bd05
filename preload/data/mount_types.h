// Finds a mount's file system in /proc/self/mountinfo, byte by byte: no memory is needed however
// long its lines are. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::preload {

class MountTypes {
 public:
  static constexpr size_t kLongest = 32;  // of a type's name, with its NUL

  // The mount of the device 0:`minor`, as block devices have none.
  explicit MountTypes(uint32_t minor) : minor_(minor) {}

  // True once the type of the mount is known.
  bool feed(char byte) {
    if (byte == '\n') {
      const bool found = matches_ && used_ != 0 && after_dash_ != 0 && field_ == after_dash_;
      if (!found) *this = MountTypes(minor_);
      return found;
    }
    if (byte == ' ') {
      if (field_ == kDevice) matches_ = device_is_right();
      if (after_dash_ != 0 && field_ == after_dash_) return matches_ && used_ != 0;
      if (after_dash_ == 0 && field_ > kDevice && used_ == 1 && text_[0] == '-') {
        after_dash_ = field_ + 1;
      }
      ++field_;
      used_ = 0;
      return false;
    }
    if (used_ + 1 < kLongest) text_[used_++] = byte;
    return false;
  }
  // REQUIRES: feed() returned true.
  const char* type() {
    text_[used_] = '\0';
    return text_;
  }

 private:
  static constexpr uint32_t kDevice = 2;  // fields are counted from 0

  bool device_is_right() const {
    if (used_ < 3 || text_[0] != '0' || text_[1] != ':') return false;
    uint64_t number = 0;
    for (size_t at = 2; at < used_; ++at) {
      if (text_[at] < '0' || text_[at] > '9') return false;
      number = number * 10 + static_cast<uint64_t>(text_[at] - '0');
    }
    return number == minor_;
  }

  uint32_t minor_;
  uint32_t field_ = 0, after_dash_ = 0;  // the field after the single "-": the type; 0: not seen
  bool matches_ = false;
  size_t used_ = 0;
  char text_[kLongest] = {};
};

// Whether data of a file system of this type comes from elsewhere.
inline bool is_remote_type(const char* type) {
  static constexpr const char* kTypes[] = {"nfs",    "nfs4",  "fuse",   "cifs", "smb3", "smbfs",
                                           "smb2",   "ceph",  "9p",     "afs",  "coda", "gpfs",
                                           "lustre", "pvfs2", "beegfs", "panfs"};
  if (strncmp(type, "fuse.", 5) == 0) return true;
  for (const char* one : kTypes) {
    if (strcmp(type, one) == 0) return true;
  }
  return false;
}

}  // namespace sluice::preload
