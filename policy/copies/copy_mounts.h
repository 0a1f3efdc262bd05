// The storage that copies are fetched from: which mount a file is on, what each mount is learned to
// deliver, and what is in flight there. Pure: time is an argument; one thread. Files are numbers of
// a FileTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "policy/copies/copy_table.h"
#include "policy/samples/file_table.h"
#include "policy/storage/demand.h"
#include "policy/storage/storage_model.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// When a thread fetched a copy, without the time in which the fetch waited for a thread, or its end
// for the caller. Zeros: not known.
struct FetchTime {
  uint64_t begun_ns = 0, took_ns = 0;
};

class CopyMounts {
 public:
  struct Mount {
    Mount() : model(1, kMaxDepth, StorageModel::Rate::kSustained) {}
    StorageModel model;  // in files rather than bytes: each counts as one
    unsigned in_flight = 0;
    uint64_t bytes = 0, files = 0;  // all that arrived, for the mean
    uint64_t charged = 0;           // for the same files
    bool busy(uint64_t now_ns) const { return in_flight >= model.depth(now_ns); }
  };
  static constexpr unsigned kMaxDepth = 128;
  // The storage of chunks, among those of devices: its requests are not those of the originals'.
  // Where substitutes come in packages, no order waits for what a chunk brings besides.
  static constexpr uint64_t kChunks = UINT64_MAX;
  static constexpr uint64_t kPackages = UINT64_MAX - 1;
  // A log of files of that mount: what is read from it asks the mount for attributes alone, and has
  // no rate. If the mount hangs, that holds up no other mount's log.
  static constexpr uint64_t log_of(uint64_t device) { return kLogs | device; }
  static constexpr bool is_log(uint64_t device) { return device >= kLogs && device < kPackages; }
  static constexpr uint64_t origin_of(uint64_t device) {
    return is_log(device) ? device & ~kLogs : device;
  }
  static constexpr bool is_storage(uint64_t device) { return device < kUnknownMounts; }

  // `files` outlives this.
  explicit CopyMounts(const FileTable* files) : files_(*files) {}

  const std::map<uint64_t, Mount>& all() const { return mounts_; }
  Mount& at(uint64_t device);
  // The mount of the file, as far as known from others of its folder; 0: not known.
  uint64_t device_of(SampleFileId file) const;
  // The same as a key of all(), where the session fetches it.
  uint64_t device_of(SampleFileId file, SessionId session) const {
    const uint64_t device = device_of(file);
    return device != 0 ? device : unknown_mount(session);
  }

  // The copy's fetch or check begins; ends, and counts for its mount as `counts` says.
  void begin(StagedCopy& copy, uint64_t now_ns);
  enum class Counts : uint8_t { kNot, kRate, kRateAndLatency };
  void end(const StagedCopy& copy, uint64_t bytes, Counts counts, uint64_t now_ns,
           FetchTime time = {});
  void set_device(SampleFileId file, uint64_t device);

  // A package is read, on the link of what may be the same storage: as much more has to be in
  // flight there as keeps it busy for the time that a file waits behind packages.
  void begin_package(uint64_t now_ns);
  void end_package(uint64_t took_ns);
  uint64_t package_ns() const { return package_ns_; }  // that it takes; 0: not known yet

  // Sums over all mounts: requests in flight, how many are allowed, bytes arriving per second.
  struct Flow {
    unsigned in_flight = 0, depth = 0;
    uint64_t bandwidth = 0;
  };
  Flow flow(uint64_t now_ns) const;
  // Fetches and checks in flight.
  uint64_t in_flight() const { return flying_; }
  // Bytes, as charged, of so many files as keep a link busy while `spread` more are being read:
  // the most of all mounts whose files orders wait for. `depths`: so many times what is in flight.
  static constexpr uint64_t kLeastDepths = 2;  // it, and as much that has arrived
  static constexpr uint64_t kDepths = 3;       // and a reserve
  uint64_t window(uint64_t spread, uint64_t now_ns, uint64_t depths = kDepths) const;
  // The time that the storage takes to deliver a file. 0: of the mount that delivered most.
  Demand demand(uint64_t device) const;
  // The same, per file of many read in parallel, ns; 0: not known yet.
  double file_ns(SampleFileId file) const { return demand(device_of(file)).link_ns; }

 private:
  static constexpr uint64_t kLogs = uint64_t{1} << 63;

  void limit_unknown();

  const FileTable& files_;
  std::vector<uint64_t> folder_device_;  // by folder; 0: not known
  std::map<uint64_t, Mount> mounts_;
  uint64_t flying_ = 0;
  uint64_t package_ns_ = 0;               // that one takes
  uint64_t begun_ns_ = 0, every_ns_ = 0;  // when the last began; the mean time between two
};

}  // namespace sluice::policy
