#include "policy/replacement/table.h"

#include "policy/replacement/auto_policy.h"
#include "policy/replacement/belady.h"
#include "policy/replacement/lfu.h"
#include "policy/replacement/list_policies.h"
#include "policy/replacement/needed.h"
#include "policy/replacement/quiver.h"
#include "policy/replacement/shade.h"

namespace sluice::optimizer {
namespace {

template <typename Kind>
std::unique_ptr<Policy> make(uint64_t capacity, uint32_t samples) {
  return std::make_unique<Kind>(capacity, samples);
}

constexpr PolicyInfo kPolicies[] = {
    {"auto", "belady where the order is known ahead, else the best of minio, lru, lfu", true,
     make<AutoPolicy>},
    {"lru", "the least recently used goes", false, make<Lru>},
    {"lfu", "the least frequently used goes", false, make<Lfu>},
    {"fifo", "the oldest goes", false, make<Fifo>},
    {"minio", "nobody goes (CoorDL)", false, make<MinIo>},
    {"quiver", "who every job has had this epoch goes (Quiver, without substitution)", false,
     make<Quiver>},
    {"shade", "the least important goes (SHADE, without its sampling)", false, make<Shade>},
    {"belady", "who is needed last goes (MIN, order known ahead)", true, make<Belady>},
    {"needed", "who is known to be needed stays, soonest first, else who matters most", true,
     make<Needed>},
};

}  // namespace

std::span<const PolicyInfo> policies() { return kPolicies; }

const PolicyInfo* find_policy(std::string_view name) {
  for (const PolicyInfo& info : kPolicies) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

}  // namespace sluice::optimizer
