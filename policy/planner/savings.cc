#include "policy/planner/savings.h"

#include <algorithm>
#include <limits>

namespace sluice::policy {
namespace {

constexpr size_t kMostReaders = 1024;
// Of a step that is coarser than the kernel's window: whether the job computed between its pages,
// while the kernel read on, or after all of them, is not seen. Half is the least wrong for both.
constexpr double kCoarseShare = 0.5;
constexpr uint64_t kMostIdleNs = 1'000'000'000;  // after a longer gap nothing was being read

uint64_t gap_ns(uint64_t before_ns, uint64_t now_ns) {
  return before_ns == 0 ? 0 : now_ns - std::min(now_ns, before_ns);
}

}  // namespace

void Savings::reads(uint64_t reader, bool ahead, uint64_t now_ns) {
  count(reader, ahead, gap_ns(epoch_.read_ns, now_ns), now_ns);
}

void Savings::reads_on(uint64_t reader, bool ahead, uint64_t now_ns, const Step& step) {
  const uint64_t gap = std::min(gap_ns(epoch_.read_ns, now_ns), kMostIdleNs);
  const uint64_t before = std::max(epoch_.waited_ns, epoch_.last_waited_ns);
  const uint64_t waited = step.waited_ns - std::min(step.waited_ns, before);
  epoch_.last_waited_ns = std::max(step.waited_ns, before);
  const double share = step.passed_ns > step.window_ns ? kCoarseShare : 1;
  const double meanwhile =
      std::min(static_cast<double>(gap - std::min(gap, waited)),
               std::max(0.0, share * step.passed_ns + step.window_ns - epoch_.lead_ns));
  epoch_.kernel_ns += meanwhile;
  epoch_.lead_ns = std::max(0.0, epoch_.lead_ns + meanwhile - step.passed_ns);
  count(reader, ahead, gap, now_ns);
}

void Savings::count(uint64_t reader, bool ahead, uint64_t gap_ns, uint64_t now_ns) {
  epoch_.busy_ns += gap_ns;
  epoch_.read_ns = std::max(epoch_.read_ns, now_ns);
  epoch_.ahead |= ahead;
  std::vector<uint64_t>& readers = epoch_.readers;
  const auto at = std::lower_bound(readers.begin(), readers.end(), reader);
  if (at != readers.end() && *at == reader) return;
  if (readers.size() < kMostReaders) readers.insert(at, reader);
}

double Savings::avoided(uint64_t waited_ns) const {
  const auto waited = static_cast<double>(waited_ns - std::min(waited_ns, epoch_.waited_ns));
  const double readers = static_cast<double>(std::max<size_t>(epoch_.readers.size(), 1));
  const auto takes = [readers](const Demand& demand) {
    return std::max(demand.alone_ns / readers, demand.link_ns);
  };
  const double missed =
      epoch_.unknown ? std::numeric_limits<double>::infinity() : takes(epoch_.missed);
  const double explained = std::min(missed, waited);
  const double hidden =
      epoch_.ahead ? std::max(0.0, static_cast<double>(epoch_.busy_ns) - waited) : epoch_.kernel_ns;
  return std::max(0.0, takes(epoch_.hits) + explained - hidden - waited);
}

void Savings::enter(uint64_t waited_ns) {
  closed_ns_ += avoided(waited_ns);
  epoch_ = {};
  epoch_.waited_ns = waited_ns;
}

uint64_t Savings::avoided_ns(uint64_t waited_ns) const {
  return static_cast<uint64_t>(closed_ns_ + avoided(waited_ns));
}

}  // namespace sluice::policy
