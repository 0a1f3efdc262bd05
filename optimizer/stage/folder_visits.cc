#include "optimizer/stage/folder_visits.h"

#include <sys/stat.h>

#include <utility>

#include "optimizer/io/clock.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kAskedNs = 200'000;  // what the kernel knows takes a hundredth of that

bool look_up(const std::string& folder) {
  const uint64_t began_ns = now_ns();
  struct stat about {};
  static_cast<void>(::stat(folder.c_str(), &about));  // errors are those of the open that follows
  return now_ns() - began_ns > kAskedNs;
}

}  // namespace

FolderVisits::FolderVisits() : FolderVisits(look_up) {}

FolderVisits::FolderVisits(LookUp look_up) : look_up_(std::move(look_up)) {}

bool FolderVisits::rests() {
  const std::lock_guard lock(mutex_);
  if (resting_ == 0) return false;
  --resting_;
  return true;
}

void FolderVisits::visit(const std::string& path) {
  if (rests()) return;
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    visit_folder(path.substr(0, at));
  }
}

unsigned FolderVisits::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

void FolderVisits::visit_folder(const std::string& folder) {
  std::unique_lock lock(mutex_);
  if (!visited_.insert(folder).second) {
    ++waiting_;
    ended_.wait(lock, [&] { return !visited_.contains(folder); });
    --waiting_;
    return;
  }
  lock.unlock();
  const bool asked = look_up_(folder);
  lock.lock();
  visited_.erase(folder);
  judge(asked);
  ended_.notify_all();
}

void FolderVisits::judge(bool asked) {
  asked_ += asked ? 1 : 0;
  if (++looked_up_ < kJudged) return;
  if (asked_ * kMostAsked > looked_up_) resting_ = kRest;
  looked_up_ = asked_ = 0;
}

}  // namespace sluice::optimizer
