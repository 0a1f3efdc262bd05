#include "policy/replacement/table.h"

#include <iterator>

#include "policy/replacement/auto_policy.h"
#include "policy/replacement/belady.h"
#include "policy/replacement/file_order.h"
#include "policy/replacement/lfu.h"
#include "policy/replacement/list_policies.h"
#include "policy/replacement/needed.h"
#include "policy/replacement/quiver.h"
#include "policy/replacement/shade.h"

namespace sluice::policy {
namespace {

template <typename Kind>
std::unique_ptr<Policy> make(uint64_t capacity, uint32_t samples) {
  return std::make_unique<Kind>(capacity, samples);
}

// In the order of PolicyKind. The last is the planner's own.
constexpr PolicyInfo kPolicies[] = {
    {PolicyKind::kAuto, "auto",
     "belady where the order is known ahead, else the best of minio, lru, lfu", true,
     make<AutoPolicy>},
    {PolicyKind::kLru, "lru", "evicts the least recently used", false, make<Lru>},
    {PolicyKind::kLfu, "lfu", "evicts the least frequently used", false, make<Lfu>},
    {PolicyKind::kFifo, "fifo", "evicts the oldest", false, make<Fifo>},
    {PolicyKind::kMinIo, "minio", "evicts nothing (CoorDL)", false, make<MinIo>},
    {PolicyKind::kQuiver, "quiver",
     "evicts what every job has read this epoch (Quiver, without substitution)", false,
     make<Quiver>},
    {PolicyKind::kShade, "shade", "evicts the least important (SHADE, without its sampling)", false,
     make<Shade>},
    {PolicyKind::kBelady, "belady", "evicts what is needed last (MIN; the order is known ahead)",
     true, make<Belady>},
    {PolicyKind::kNeeded, "needed",
     "retains what is known to be needed, soonest first, then the most important", true,
     make<Needed>},
    {PolicyKind::kFileOrder, "file-order", "retains what comes first in its file", false,
     make<FileOrder>},
};
constexpr size_t kForUsers = std::size(kPolicies) - 1;

constexpr bool in_order() {
  for (size_t at = 0; at < std::size(kPolicies); ++at) {
    if (static_cast<size_t>(kPolicies[at].kind) != at) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const PolicyInfo> policies() { return std::span(kPolicies).first(kForUsers); }

const PolicyInfo* find_policy(std::string_view name) {
  for (const PolicyInfo& info : policies()) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

const PolicyInfo& policy_info(PolicyKind kind) { return kPolicies[static_cast<size_t>(kind)]; }

}  // namespace sluice::policy
