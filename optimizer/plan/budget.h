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
  double pressure = 0;                // percent of the last 10 s in which somebody waited for memory
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
