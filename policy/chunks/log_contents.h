// Which bytes each of the two logs of log_plan.h has been given, by sample. What a read finds in a
// log may differ from what was looked up before for two reasons: the disk is damaged, or the log
// was cleared, or written again, in between. This class distinguishes them.
//
// Pure; one thread. 32 bytes a sample.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

class LogContents {
 public:
  struct Entry {
    uint32_t log = 0;
    uint64_t edition = 0;   // of the log: another one after it was cleared
    uint64_t checksum = 0;  // of the sample's bytes
    uint64_t version = 0;   // of the original that they were copied from
    bool operator==(const Entry&) const = default;
  };
  struct Write {
    SampleId sample = 0;
    uint32_t log = 0;
    uint64_t version = 0, number = 0;
  };

  // Both logs are empty, and have editions that neither had before.
  void reset(size_t samples);
  void clear(uint32_t log);

  // The sample's bytes are about to be written: it is not to be found before end().
  Write begin(SampleId sample, uint32_t log, uint64_t version);
  // They were. False, and no effect: the log was cleared meanwhile, or the sample dropped, or
  // another write of it has begun.
  bool end(const Write& write, uint64_t checksum);
  // Whatever the log has is not, or will not be, the sample's bytes.
  void drop(SampleId sample, uint32_t log);

  std::optional<Entry> find(SampleId sample, uint32_t log) const;
  // What find() returned is still so, and was at all times between.
  bool stands(SampleId sample, const Entry& entry) const;

 private:
  struct Written {
    uint64_t checksum = 0;  // 0: not written
    uint64_t version = 0;
  };
  static uint64_t key(SampleId sample, uint32_t log) { return uint64_t{log} << 32 | sample; }

  std::array<std::vector<Written>, 2> logs_;
  std::array<uint64_t, 2> editions_{};
  std::unordered_map<uint64_t, uint64_t> writes_;  // numbers of those that have not ended
  uint64_t last_ = 0;                              // number of an edition or a write
};

}  // namespace sluice::policy
