#include "optimizer/chunks/disk_rates.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "optimizer/chunks/aligned_buffer.h"
#include "optimizer/chunks/log_files.h"
#include "optimizer/io/clock.h"
#include "policy/util/random.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kScattered = 128 << 10, kLarge = 1 << 20;  // bytes of a read
constexpr unsigned kAtOnce = 4;
// What else the disk does may slow one round: the best of each kind counts.
constexpr unsigned kRounds = 5;
constexpr uint64_t kRoundNs = 60 * kMillisecond;
constexpr uint64_t kRoomTimes = 8;    // kMeasuredBytes that are free
constexpr uint64_t kFreePercent = 5;  // as packs leave

static_assert(kMeasuredBytes <= LogFiles::kStripe);  // in one file

uint64_t room_of(const std::string& folder) {
  struct statvfs about {};
  if (statvfs(folder.c_str(), &about) != 0) return 0;
  const uint64_t reserve = about.f_blocks / 100 * kFreePercent;
  return (about.f_bavail - std::min<uint64_t>(about.f_bavail, reserve)) * about.f_frsize;
}

// Contents that no disk compresses.
bool fill(LogFiles* files) {
  AlignedBuffer block(kLarge);
  if (block.size() == 0) return false;
  for (uint64_t at = 0; at < kMeasuredBytes; at += block.size()) {
    for (size_t word = 0; word < block.size(); word += sizeof(uint64_t)) {
      const uint64_t drawn = mixed(at + word);
      memcpy(block.data() + word, &drawn, sizeof drawn);
    }
    if (files->write(0, at, block.span()) != 0) return false;
  }
  return fdatasync(files->descriptor(0)) == 0;
}

// Bytes a second; 0: a read failed.
double rate(const LogFiles& files, uint64_t bytes, unsigned round) {
  std::atomic<uint64_t> all{0};
  std::atomic<bool> failed{false};
  const uint64_t begun = now_ns();
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < kAtOnce; ++thread) {
      threads.emplace_back([&, seed = round * kAtOnce + thread] {
        uint64_t drawn = seed;
        do {
          int error = 0;
          drawn = mixed(drawn + 1);
          const uint64_t place = drawn % (kMeasuredBytes / bytes);
          if (files.read(0, {place * bytes, bytes}, &error).size() < bytes) failed = true;
          all += bytes;
        } while (!failed && now_ns() - begun < kRoundNs);
      });
    }
  }
  const double seconds = static_cast<double>(now_ns() - begun) / kSecond;
  return failed ? 0 : static_cast<double>(all) / seconds;
}

}  // namespace

std::optional<MeasuredDisk> measure_disk(const std::string& folder) {
  std::string reason;
  MeasuredDisk disk;
  disk.room = room_of(folder);
  if (disk.room < kRoomTimes * kMeasuredBytes) return std::nullopt;
  const std::unique_ptr<LogFiles> files = LogFiles::open(folder, &reason);
  if (files == nullptr || !files->is_direct() || !fill(files.get())) return std::nullopt;
  policy::DiskRates& best = disk.rates;
  for (unsigned round = 0; round < kRounds; ++round) {
    const double scattered = rate(*files, kScattered, round);
    const double large = rate(*files, kLarge, round);
    if (scattered == 0 || large == 0) return std::nullopt;
    best = {std::max(best.scattered, scattered), std::max(best.large, large)};
  }
  return disk;
}

}  // namespace sluice::optimizer
