// How many bytes may be read ahead. Pure: text of the kernel's files in, bytes out.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::optimizer {

inline constexpr uint64_t kUnlimited = UINT64_MAX;
inline constexpr uint64_t kMinBudget = 1 << 20;  // below this nothing useful can be done

// One level of the memory cgroup's hierarchy. Bytes.
struct CgroupMemory {
  uint64_t limit = kUnlimited;  // hard or soft, the lower
  uint64_t usage = 0;
  uint64_t reclaimable = 0;  // of usage: page cache, which gives way
};

struct MemoryFacts {
  uint64_t available = 0;             // of the host, MemAvailable
  std::vector<CgroupMemory> cgroups;  // from ours to the root; may be empty
  double pressure = 0;  // percent of the last 10 s in which somebody waited for memory
};

// What the host and every cgroup level leave, bytes; `staged` of what is in use is ours, and can be
// given up.
uint64_t memory_left(const MemoryFacts& facts, uint64_t staged);

// What may be used of a budget while memory is short: less and less while somebody waits for it,
// then slowly more again. Asked once a second.
class PressureBrake {
 public:
  // `pressure` in percent, as MemoryFacts has it. A share, above 0 and at most 1.
  double next(double pressure);

 private:
  double share_ = 1;
};

// Who may have how much of memory: one budget for the page cache that is filled ahead and for the
// stage. Each may have what the other does not use, and neither less than half. Copies cannot be
// reclaimed by the kernel, so while memory is short they are fewer.
class MemoryShares {
 public:
  // Once a second. `wish`: the most that the optimizer was told to use, 0: no wish; `staged`: bytes
  // in the stage.
  void look(const MemoryFacts& facts, uint64_t wish, uint64_t staged);

  uint64_t budget() const { return budget_; }  // bytes, of both together
  // The most that a job which asks for more than is usual may have.
  uint64_t most() const { return stage_most_; }
  // For the stage while `ahead` bytes of the page cache are read ahead. `asked`: the most that a
  // job with staged files asks for, which it gets as far as it is there; 0: what is usual.
  uint64_t stage(uint64_t ahead, uint64_t asked) const;
  // For the page cache while there are `staged` bytes in the stage.
  uint64_t cache(uint64_t staged) const;

 private:
  uint64_t budget_ = 0;
  uint64_t stage_most_ = 0;  // whatever is asked for
  double share_ = 1;         // of what the stage may have, while memory is short
  PressureBrake brake_;
};

// min(asked, 20 % of what the host and every cgroup level leave), at least kMinBudget.
// `asked` 0: no wish.
uint64_t budget_bytes(const MemoryFacts& facts, uint64_t asked, uint64_t staged = 0);

// "9223372036854771712\n" or "max\n"; v1 writes absurdly high numbers for no limit.
uint64_t parse_limit(std::string_view text);
// "some avg10=1.23 avg60=..." of a pressure file: 1.23; 0 if it is none.
double parse_pressure(std::string_view text);
// The value of `key` in "key value\n" lines (memory.stat, /proc/meminfo with its "kB"); 0 if none.
uint64_t parse_field(std::string_view text, std::string_view key);

}  // namespace sluice::optimizer
