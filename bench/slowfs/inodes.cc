#include "bench/slowfs/inodes.h"

#include <fcntl.h>

#include <utility>

namespace sluice::slowfs {

std::string Inodes::path(uint64_t node) const {
  if (node == kRoot) return ".";
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::string() : found->second.path;
}

std::string Inodes::path(uint64_t node, const char* name) const {
  if (node == kRoot) return name;
  std::string folder = path(node);
  if (folder.empty()) return folder;
  return folder.append("/").append(name);
}

bool Inodes::is(uint64_t node, const FileKey& key) const {
  if (node == kRoot) return true;
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.key == key;
}

uint64_t Inodes::remember(const FileKey& key, const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto [place, added] = by_key_.try_emplace(key, next_);
  if (added) nodes_[next_++] = Node{key, path, 0, {}};
  Node& node = nodes_[place->second];
  // The name seen last wins: of hard links, an older one may have been removed.
  if (!added && node.path != path) node.path = path;
  ++node.references;
  return place->second;
}

void Inodes::looked_up(uint64_t node) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) found->second.looked_up = true;
}

bool Inodes::opens_what_was_looked_up(uint64_t node) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found != nodes_.end() && std::exchange(found->second.looked_up, false);
}

void Inodes::forget(uint64_t node, uint64_t count) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  if (found->second.references > count) {
    found->second.references -= count;
    return;
  }
  by_key_.erase(found->second.key);
  nodes_.erase(found);
}

void Inodes::opened(uint64_t node, int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) found->second.open.push_back(fd);
}

void Inodes::closed(uint64_t node, int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) std::erase(found->second.open, fd);
}

int Inodes::open_copy(uint64_t node) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.open.empty()) return -1;
  return fcntl(found->second.open.back(), F_DUPFD_CLOEXEC, 0);
}

std::vector<std::pair<uint64_t, std::string>> Inodes::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint64_t, std::string>> all;
  all.reserve(nodes_.size());
  for (const auto& [number, node] : nodes_) all.emplace_back(number, node.path);
  return all;
}

size_t Inodes::size() const {
  const std::lock_guard lock(mutex_);
  return nodes_.size();
}

}  // namespace sluice::slowfs
