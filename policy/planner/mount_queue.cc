#include "policy/planner/mount_queue.h"

#include <algorithm>

namespace sluice::policy {

void MountQueue::add(uint64_t mount, uint32_t block, unsigned max_depth) {
  mounts_.try_emplace(mount, block, max_depth);
}

void MountQueue::set(uint64_t mount, uint32_t block, unsigned max_depth) {
  const auto at = mounts_.find(mount);
  const bool idle = at != mounts_.end() && at->second.in_flight == 0 && at->second.waiting.empty();
  if (idle) mounts_.erase(at);
  add(mount, block, max_depth);
}

const StorageModel* MountQueue::model(uint64_t mount) const {
  const auto at = mounts_.find(mount);
  return at == mounts_.end() ? nullptr : &at->second.model;
}

unsigned MountQueue::in_flight(uint64_t mount) const {
  const auto at = mounts_.find(mount);
  return at == mounts_.end() ? 0 : at->second.in_flight;
}

uint64_t MountQueue::waiting_bytes(uint64_t mount) const {
  const auto at = mounts_.find(mount);
  return at == mounts_.end() ? 0 : at->second.waiting.bytes();
}

void MountQueue::start(Request request, uint64_t now_ns, std::vector<PlannedRead>* reads) {
  PlannedFile& file = files_.at(request.file);
  Mount& mount = of(file);
  request.mount = file.mount;
  request.sample = mount.model.on_issue(now_ns, mount.in_flight);
  ++mount.in_flight;
  mount.in_flight_bytes += request.range.length();
  mount.gathered += request.gathered;
  file.pages.on(PageEvent::kReadBegun, request.range);
  accounts_.charge(request.session, request.range.length());
  const uint64_t token = next_token_++;
  reads->push_back({token, request.file, request.range});
  requests_.emplace(token, request);
}

std::optional<Request> MountQueue::end(uint64_t token) {
  const auto at = requests_.find(token);
  if (at == requests_.end()) return std::nullopt;
  const Request request = at->second;
  requests_.erase(at);
  accounts_.release(request.session, request.range.length());
  Mount& mount = mounts_.at(request.mount);
  --mount.in_flight;
  mount.in_flight_bytes -= request.range.length();
  mount.gathered -= request.gathered;
  return request;
}

uint64_t MountQueue::refill_ns(uint64_t now_ns) const {
  uint64_t shortest = 0;
  for (const auto& [id, mount] : mounts_) {
    if (mount.in_flight == 0) continue;
    const double rate = mount.model.bandwidth();
    if (mount.in_flight < 2 * StorageModel::kMinDepth || rate <= 0) return 0;
    const double bytes = static_cast<double>(mount.in_flight_bytes) / 4;
    const auto interval = static_cast<uint64_t>(bytes * 1e9 / rate);
    if (mount.model.starting() || mount.in_flight < mount.model.depth(now_ns) / 2) return 0;
    shortest = shortest == 0 ? interval : std::min(shortest, interval);
  }
  return shortest;
}

std::vector<uint64_t> MountQueue::hung(uint64_t now_ns, uint64_t limit_ns) const {
  std::vector<uint64_t> mounts;
  for (const auto& [token, request] : requests_) {
    if (now_ns - std::min(now_ns, request.sample.issued_ns) < limit_ns) continue;
    if (std::find(mounts.begin(), mounts.end(), request.mount) == mounts.end()) {
      mounts.push_back(request.mount);
    }
  }
  return mounts;
}

std::vector<uint64_t> MountQueue::tokens_of(FileId file) const {
  std::vector<uint64_t> tokens;
  for (const auto& [token, request] : requests_) {
    if (request.file == file) tokens.push_back(token);
  }
  return tokens;
}

uint64_t MountQueue::requests_of(SessionId session) const {
  return static_cast<uint64_t>(
      std::count_if(requests_.begin(), requests_.end(),
                    [session](const auto& entry) { return entry.second.session == session; }));
}

}  // namespace sluice::policy
