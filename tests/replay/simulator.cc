#include "tests/replay/simulator.h"

#include <algorithm>
#include <cerrno>

namespace sluice::test {

void Simulator::add_mount(uint64_t mount, uint32_t block, unsigned depth, Storage storage) {
  mounts_[mount].storage = storage;
  scheduler.queue().add(mount, block, depth);
}

void Simulator::add_file(FileId file, uint64_t size, uint64_t mount) {
  mount_of_[file] = mount;
  scheduler.add_file(file, size, mount);
  scheduler.file_usable(file, true);
}

uint64_t Simulator::answer(uint64_t id, uint64_t bytes, uint64_t time_ns) {
  Mount& mount = mounts_.at(id);
  const auto transfer =
      static_cast<uint64_t>(static_cast<double>(bytes) / mount.storage.bandwidth * 1e9);
  mount.free_ns = std::max(mount.free_ns, time_ns) + transfer;
  return mount.free_ns + static_cast<uint64_t>(mount.storage.latency_s * 1e9);
}

void Simulator::pump() {
  std::vector<PlannedRead> planned;
  scheduler.plan(now_, &planned);
  for (const PlannedRead& read : planned) {
    if (on_read) on_read(now_, read);
    ++reads;
    flying_[read.token] = read;
    coming_[read.file].add(read.range);
    // Without being asked, the cache still answers at once.
    if (!reports_cache && cache[read.file].contains(read.range)) {
      ends_.push({now_ + 20'000, read.token});
      continue;
    }
    ends_.push({answer(mount_of_.at(read.file), read.range.length(), now_), read.token});
  }
  most_outstanding = std::max(most_outstanding, scheduler.accounts().outstanding());
  std::vector<PlannedDrop> drops;
  scheduler.drops(now_, &drops);
  for (const PlannedDrop& drop : drops) {
    if (on_drop) on_drop(now_, drop);
    bytes_dropped += cache[drop.file].remove(drop.range);
    scheduler.on_dropped(drop, 0, now_);
  }
}

void Simulator::advance_to(uint64_t time_ns) {
  while (!ends_.empty() && ends_.top().time <= time_ns) {
    const End end = ends_.top();
    ends_.pop();
    now_ = std::max(now_, end.time);
    const PlannedRead read = flying_.at(end.token);
    flying_.erase(end.token);
    coming_[read.file].remove(read.range);
    const int error = fail ? fail(read) : 0;
    if (error == 0) {
      cache[read.file].add(read.range);
      bytes_read += read.range.length();
    }
    scheduler.on_done(end.token, error == 0 ? read.range.length() : 0, error, now_);
    pump();
  }
  now_ = std::max(now_, time_ns);
}

void Simulator::access(FileId file, const Access& access) {
  advance_to(access.time_ns);
  scheduler.streams().on_access(file, access);
  pump();
}

uint64_t Simulator::demand(FileId file, Range range, uint64_t time_ns) {
  constexpr uint64_t kReadAhead = 128 << 10;  // one request at a time, as the kernel's read-ahead
  for (uint64_t at = range.begin; at < range.end;) {
    const Range piece{at, std::min((at / kReadAhead + 1) * kReadAhead, range.end)};
    at = piece.end;
    while (cache[file].covered(piece) < piece.length()) {
      if (coming_[file].covered(piece) > 0 && !ends_.empty()) {
        time_ns = std::max(time_ns, ends_.top().time);  // a job reads it: wait for that
        advance_to(time_ns);
        continue;
      }
      time_ns = answer(mount_of_.at(file), piece.length(), time_ns);
      cache[file].add(piece);
    }
    advance_to(time_ns);
  }
  return time_ns;
}

}  // namespace sluice::test
