#include "policy/folders/open_window.h"

#include <algorithm>

namespace sluice::policy {

std::optional<uint32_t> OpenWindow::next() {
  if (next_ >= files_ || next_ >= base_ + kAhead || held_.size() >= kAhead + kBehind) return {};
  held_.insert(next_);
  return next_++;
}

void OpenWindow::passed(uint32_t file, std::vector<uint32_t>* closed) {
  if (file < base_) return;
  if (file >= base_ + kAhead) {
    const bool again = far_ && file != *far_ && file + kAhead > *far_ && file < *far_ + kAhead;
    far_ = file;
    if (!again) return;
  }
  far_.reset();
  base_ = file + 1;
  next_ = std::max(next_, base_);
  const uint32_t oldest = base_ > kBehind ? base_ - kBehind : 0;
  while (!held_.empty() && *held_.begin() < oldest) {
    closed->push_back(*held_.begin());
    held_.erase(held_.begin());
  }
}

}  // namespace sluice::policy
