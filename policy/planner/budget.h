// How many bytes may be prefetched. Pure: text of the kernel's files in, bytes out.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::policy {

inline constexpr uint64_t kUnlimited = UINT64_MAX;
inline constexpr uint64_t kMinBudget = 1 << 20;  // below this nothing useful can be done

// One level of the memory cgroup's hierarchy. Bytes.
struct CgroupMemory {
  uint64_t limit = kUnlimited;  // hard or soft limit, the lower one
  uint64_t usage = 0;
  uint64_t reclaimable = 0;  // page cache in `usage`, which the kernel can reclaim
};

struct MemoryFacts {
  uint64_t available = 0;             // of the host, MemAvailable
  std::vector<CgroupMemory> cgroups;  // from the optimizer's own to the root; may be empty
  double pressure = 0;  // percent of the last 10 s in which some task waited for memory
};

// Bytes that the host and every cgroup level leave. `staged`: bytes in use that are staged copies;
// they count as free, since Sluice can evict them.
uint64_t memory_left(const MemoryFacts& facts, uint64_t staged);

// The share of a budget that may be used under memory pressure: it falls step by step while tasks
// wait for memory, then slowly rises again. Called once a second.
class PressureBrake {
 public:
  // `pressure` in percent, as in MemoryFacts. Returns a share above 0 and at most 1.
  double next(double pressure);

 private:
  double share_ = 1;
};

// Divides one memory budget between prefetched page cache and the stage. Each may use what the
// other leaves, and never has less than half. The kernel cannot reclaim staged copies, so memory
// pressure lowers the stage's part: down to a small share of the memory that is left, since to
// evict that would relieve nothing. (The host's pressure counts tasks that wait at the limit of a
// cgroup of their own, too, however much memory the host has left.)
class MemoryShares {
 public:
  // Once a second. `wish`: the configured upper limit, bytes; 0: none. `staged`: bytes in the
  // stage.
  void update(const MemoryFacts& facts, uint64_t wish, uint64_t staged);

  uint64_t budget() const { return budget_; }  // bytes, of page cache and stage together
  // Upper limit for a job that asks for more than the usual budget.
  uint64_t most() const { return stage_most_; }
  // Bytes for the stage while `ahead` bytes of page cache are prefetched. `requested`: the most
  // that a job with staged files asks for, granted as far as that memory exists; 0: the usual
  // budget.
  uint64_t stage(uint64_t ahead, uint64_t requested) const;
  // Bytes for the page cache while the stage holds `staged` bytes.
  uint64_t cache(uint64_t staged) const;

 private:
  uint64_t budget_ = 0;
  uint64_t stage_most_ = 0;  // upper limit, whatever a job asks for
  uint64_t spared_ = 0;      // bytes that pressure leaves to the stage
  double share_ = 1;         // of the stage's part, under memory pressure
  PressureBrake brake_;
};

// min(requested, 20 % of what the host and every cgroup level leave), at least kMinBudget.
// `requested` 0: no upper limit configured.
uint64_t budget_bytes(const MemoryFacts& facts, uint64_t requested, uint64_t staged = 0);

// "9223372036854771712\n" or "max\n"; cgroup v1 writes a huge number for "no limit".
uint64_t parse_limit(std::string_view text);
// The avg10 in the line "some avg10=1.23 avg60=..." of a pressure file, 1.23; 0 if there is none.
double parse_pressure(std::string_view text);
// The value of `key` in "key value\n" lines (memory.stat, /proc/meminfo with "kB"); 0 if absent.
uint64_t parse_field(std::string_view text, std::string_view key);

}  // namespace sluice::policy
