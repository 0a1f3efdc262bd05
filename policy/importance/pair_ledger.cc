#include "policy/importance/pair_ledger.h"

namespace sluice::policy {
namespace {

uint32_t part_of(SampleId sample, uint64_t samples) {
  return static_cast<uint32_t>(uint64_t{sample} * PairLedger::kParts / samples);
}

}  // namespace

void PairLedger::add(Pair pair, uint64_t samples) {
  ++counts_[part_of(pair.requested, samples)][part_of(pair.trained, samples)];
  if (++seen_ <= kMostPairs) {
    pairs_.push_back(pair);
    return;
  }
  const auto place = static_cast<uint64_t>(random_.unit() * static_cast<double>(seen_));
  if (place < kMostPairs) pairs_[place] = pair;
}

}  // namespace sluice::policy
