#include "policy/copies/copy_table.h"

namespace sluice::policy {

StagedCopy* CopyTable::find(SampleFileId file) {
  const auto at = copies_.find(file);
  return at == copies_.end() ? nullptr : &at->second;
}

const StagedCopy* CopyTable::find(SampleFileId file) const {
  const auto at = copies_.find(file);
  return at == copies_.end() ? nullptr : &at->second;
}

CopyTable::Has CopyTable::has(SampleFileId file) const {
  const StagedCopy* copy = find(file);
  if (copy == nullptr || copy->dropped) return Has::kNot;
  return copy->state == State::kFetching ? Has::kComing : Has::kStaged;
}

bool CopyTable::retains(SampleFileId file) const {
  const StagedCopy* copy = find(file);
  return copy != nullptr && copy->state != State::kFetching && (copy->read || copy->brought);
}

bool CopyTable::offers(SampleFileId file, uint64_t time_ns) const {
  const StagedCopy* copy = find(file);
  return copy != nullptr && copy->state != State::kFetching && !copy->to_cache &&
         copy->staged_ns <= time_ns;
}

// Adds the copy to the sums, or takes it out of them.
void CopyTable::count(const StagedCopy& copy, bool added) {
  const uint64_t bytes = added ? copy.charged : -copy.charged;
  used_ += bytes;
  if (copy.is_ahead()) ahead_ += bytes;
  if (copy.state == State::kRetained && copy.awaited > 0) awaited_ += bytes;
}

StagedCopy& CopyTable::add(SampleFileId file, uint64_t charged) {
  StagedCopy& copy = copies_[file];
  copy.charged = charged;
  count(copy, true);
  return copy;
}

void CopyTable::set_charged(StagedCopy& copy, uint64_t bytes) {
  count(copy, false);
  copy.charged = bytes;
  count(copy, true);
}

void CopyTable::set_state(SampleFileId file, StagedCopy& copy, State state) {
  count(copy, false);
  copy.state = state;
  count(copy, true);
  if (state != State::kSpent) return;
  if (!copy.queued) spent_.push_back(file);
  copy.queued = true;
}

void CopyTable::set_awaited(StagedCopy& copy, uint8_t times) {
  count(copy, false);
  copy.awaited = times;
  count(copy, true);
}

void CopyTable::end_awaited(StagedCopy& copy) {
  if (copy.awaited > 0) set_awaited(copy, copy.awaited - 1);
}

std::vector<SampleFileId> CopyTable::await(
    const std::vector<uint8_t>& wanted, const std::unordered_map<SampleFileId, uint32_t>& readers) {
  std::vector<SampleFileId> left;
  for (auto& [file, copy] : copies_) {
    set_awaited(copy, wanted[number(file)]);
    const auto coming = readers.find(file);
    copy.readers = coming == readers.end() ? 0 : coming->second;
    if (copy.readers > 0 && copy.state == State::kSpent) set_state(file, copy, State::kAhead);
    if (copy.readers > 0 || copy.state != State::kAhead) continue;
    if (copy.awaited > 0 && !copy.to_cache) {
      set_state(file, copy, State::kRead);
      left.push_back(file);
    } else {
      if (copy.awaited == 0) waste(copy);
      set_state(file, copy, State::kSpent);
    }
  }
  return left;
}

// If the copy was not read, it will not be.
void CopyTable::waste(StagedCopy& copy) {
  if (copy.read || copy.took_ns == 0) return;
  wasted_.push_back({copy.dataset, copy.took_ns});
  copy.took_ns = 0;
}

void CopyTable::remove(SampleFileId file) {
  const auto at = copies_.find(file);
  if (at == copies_.end()) return;
  count(at->second, false);
  copies_.erase(at);
}

void CopyTable::evict(SampleFileId file) {
  StagedCopy* copy = find(file);
  if (copy == nullptr) return;
  waste(*copy);
  evicted_.push_back(file);
  remove(file);
}

SampleFileId CopyTable::take_spent() {
  while (!spent_.empty()) {
    const SampleFileId file = spent_.front();
    spent_.pop_front();
    StagedCopy* copy = find(file);
    if (copy == nullptr) continue;
    copy->queued = false;
    if (copy->state == State::kSpent) return file;
  }
  return {};
}

}  // namespace sluice::policy
