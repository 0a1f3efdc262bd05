#include "optimizer/plan/savings.h"

#include <algorithm>
#include <limits>

namespace sluice::optimizer {
namespace {

constexpr size_t kMostReaders = 1024;

}  // namespace

void Savings::reads(uint64_t reader, bool ahead, uint64_t now_ns, uint64_t most_ns) {
  if (epoch_.read_ns != 0 && now_ns > epoch_.read_ns) {
    epoch_.busy_ns += std::min(now_ns - epoch_.read_ns, most_ns);
  }
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
      epoch_.ahead ? std::max(0.0, static_cast<double>(epoch_.busy_ns) - waited) : 0;
  return std::max(0.0, takes(epoch_.served) + explained - hidden - waited);
}

void Savings::enter(uint64_t waited_ns) {
  closed_ns_ += avoided(waited_ns);
  epoch_ = {};
  epoch_.waited_ns = waited_ns;
}

uint64_t Savings::avoided_ns(uint64_t waited_ns) const {
  return static_cast<uint64_t>(closed_ns_ + avoided(waited_ns));
}

}  // namespace sluice::optimizer
