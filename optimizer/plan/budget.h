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
};

// min(asked, 20 % of what the host and every cgroup level leave), at least kMinBudget.
// `asked` 0: no wish.
uint64_t budget_bytes(const MemoryFacts& facts, uint64_t asked);

// "9223372036854771712\n" or "max\n"; v1 writes absurdly high numbers for no limit.
uint64_t parse_limit(std::string_view text);
// The value of `key` in "key value\n" lines (memory.stat, /proc/meminfo with its "kB"); 0 if none.
uint64_t parse_field(std::string_view text, std::string_view key);

}  // namespace sluice::optimizer
