#include "policy/copies/copy_mounts.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr size_t kMostMounts = 64;  // with idle unknown ones
// How long a package may keep a link busy: beyond that it is not the link that is slow.
constexpr uint64_t kMostBusyNs = 50'000'000;
// Between two packages, after which the time between them says nothing of how often they come.
constexpr uint64_t kPauseNs = 1'000'000'000;
constexpr uint64_t kRecent = 16;  // packages, about

}  // namespace

uint64_t CopyMounts::device_of(SampleFileId file) const {
  const uint32_t folder = files_.folder(file);
  return folder < folder_device_.size() ? folder_device_[folder] : 0;
}

// Most are of sessions that have ended. One of a session that goes on is learned again.
void CopyMounts::limit_unknown() {
  if (mounts_.size() < kMostMounts) return;
  std::erase_if(mounts_, [](const auto& entry) {
    return entry.first >= kUnknownMounts && entry.first < kPackages && entry.second.in_flight == 0;
  });
}

CopyMounts::Mount& CopyMounts::at(uint64_t device) {
  if (!mounts_.contains(device)) limit_unknown();
  return mounts_[device];
}

void CopyMounts::begin(StagedCopy& copy, uint64_t now_ns) {
  Mount& mount = at(copy.device);
  copy.issued_ns = now_ns;
  copy.sample = mount.model.on_issue(now_ns, mount.in_flight++);
  ++flying_;
}

void CopyMounts::end(const StagedCopy& copy, uint64_t bytes, Counts counts, uint64_t now_ns,
                     FetchTime time) {
  Mount& mount = mounts_[copy.device];
  --mount.in_flight;
  --flying_;
  if (counts == Counts::kNot || is_log(copy.device)) return;
  mount.bytes += bytes;
  mount.charged += FileTable::charge(bytes);
  ++mount.files;
  // Several that ended while the caller was at other work arrived one by one.
  const uint64_t ended_ns = time.begun_ns == 0 ? now_ns : time.begun_ns + time.took_ns;
  mount.model.on_done(copy.sample, 1, std::min(now_ns, ended_ns), counts == Counts::kRateAndLatency,
                      time.took_ns);
}

void CopyMounts::set_device(SampleFileId file, uint64_t device) {
  const uint32_t folder = files_.folder(file);
  if (folder >= folder_device_.size()) folder_device_.resize(files_.folders());
  folder_device_[folder] = device;
}

CopyMounts::Flow CopyMounts::flow(uint64_t now_ns) const {
  Flow sum;
  for (const auto& [device, mount] : mounts_) {
    if (mount.files == 0) continue;
    sum.in_flight += mount.in_flight;
    sum.depth += mount.model.depth(now_ns);
    sum.bandwidth += static_cast<uint64_t>(mount.model.bandwidth()) * (mount.bytes / mount.files);
  }
  return sum;
}

// As long as files wait behind packages that take the same time each and come at random (the
// formula of Pollaczek and Khinchine). A queue for as long as one takes would be memory that is
// better used where they are rare.
void CopyMounts::begin_package(uint64_t now_ns) {
  const uint64_t since_ns = now_ns - std::min(now_ns, begun_ns_);
  if (begun_ns_ != 0 && since_ns < kPauseNs) {
    every_ns_ = every_ns_ == 0 ? since_ns : every_ns_ - every_ns_ / kRecent + since_ns / kRecent;
  }
  begun_ns_ = now_ns;
  if (package_ns_ == 0 || every_ns_ == 0) return;
  const auto takes_ns = static_cast<double>(std::min(package_ns_, kMostBusyNs));
  const double share = takes_ns / static_cast<double>(every_ns_);
  const double waits = share < 2.0 / 3 ? share / (2 * (1 - share)) : 1;
  for (auto& [device, mount] : mounts_) {
    if (is_storage(device)) mount.model.set_busy(static_cast<uint64_t>(waits * takes_ns), now_ns);
  }
}

// The least of the last ones: what the others took beyond it they waited behind the files in
// flight, whose number would grow and grow.
void CopyMounts::end_package(uint64_t took_ns) {
  if (took_ns == 0) return;  // not known
  package_ns_ = package_ns_ == 0 ? took_ns : std::min(took_ns, package_ns_ + package_ns_ / kRecent);
}

uint64_t CopyMounts::window(uint64_t spread, uint64_t now_ns, uint64_t depths) const {
  uint64_t most = 0;
  for (const auto& [device, mount] : mounts_) {
    if (mount.files == 0 || device == kPackages) continue;
    const uint64_t mean = mount.charged / mount.files + 1;
    most = std::max(most, (depths * mount.model.depth(now_ns) + spread) * mean);
  }
  return most;
}

Demand CopyMounts::demand(uint64_t device) const {
  auto mount = mounts_.find(device);
  if (device == 0) {
    for (auto at = mounts_.begin(); at != mounts_.end() && at->first < kLogs; ++at) {
      if (mount == mounts_.end() || at->second.files > mount->second.files) mount = at;
    }
  }
  if (mount == mounts_.end()) return {};
  const double rate = mount->second.model.bandwidth();
  return {mount->second.model.usual_ns(), rate > 0 ? 1e9 / rate : 0};
}

}  // namespace sluice::policy
