#include "optimizer/stage/folder_visits.h"

#include <sys/stat.h>

#include <utility>

namespace sluice::optimizer {
namespace {

void look_up(const std::string& folder) {
  struct stat about {};
  static_cast<void>(::stat(folder.c_str(), &about));  // an error is for who opens the file
}

}  // namespace

FolderVisits::FolderVisits() : FolderVisits(look_up) {}

FolderVisits::FolderVisits(std::function<void(const std::string&)> look_up)
    : look_up_(std::move(look_up)) {}

void FolderVisits::visit(const std::string& path) {
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
  look_up_(folder);
  lock.lock();
  visited_.erase(folder);
  ended_.notify_all();
}

}  // namespace sluice::optimizer
