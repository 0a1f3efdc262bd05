// Which files of a start are held open ahead of the job: of a list in the order in which an earlier
// start opened them, those in front of the one that the job opened last. A window, since a file
// that is opened long before the job opens it is an older one. No I/O, no clock; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace sluice::policy {

class OpenWindow {
 public:
  static constexpr uint32_t kAhead = 48;   // files in front of the last opened one
  static constexpr uint32_t kBehind = 16;  // files behind it that it may still open: at most both

  explicit OpenWindow(uint32_t files) : files_(files) {}

  // The next file to open, which counts as held until it is closed or released.
  std::optional<uint32_t> next();
  // The job has opened the file, taken from here or by itself. Appends files that it has gone past,
  // which are to be closed and are not held any more. A file far from the last one moves the window
  // only if the next one is near it.
  void passed(uint32_t file, std::vector<uint32_t>* closed);
  bool holds(uint32_t file) const { return held_.count(file) != 0; }
  // The file is not held any more: taken, or not opened.
  void release(uint32_t file) { held_.erase(file); }

 private:
  const uint32_t files_;
  uint32_t base_ = 0;  // behind the last opened file
  uint32_t next_ = 0;  // to be opened
  std::optional<uint32_t> far_;
  std::set<uint32_t> held_;
};

}  // namespace sluice::policy
