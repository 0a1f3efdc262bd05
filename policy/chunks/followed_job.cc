#include "policy/chunks/followed_job.h"

#include <algorithm>
#include <span>

namespace sluice::policy {

FollowedJob::FollowedJob(const SampleBook* book, const FileTable* files, JobOrders::Key key,
                         uint64_t samples)
    : book_(*book), files_(*files), key_(key), bytes_(samples), position_(samples, kNone) {}

std::unique_ptr<FollowedJob> FollowedJob::choose(const SampleBook* book, const FileTable* files,
                                                 uint64_t budget, uint64_t chunk) {
  for (const auto& [key, job] : book->orders().all()) {
    const SampleSet* set = book->set(key.second);
    if (set == nullptr || set->samples() > kMostSamples || job.order.size() < kLeastOrder) continue;
    const std::span<const Extent> first = set->parts(job.order.order().front());
    if (first.size() != 1 || !first.front().file.is_whole()) continue;
    std::unique_ptr<FollowedJob> followed(new FollowedJob(book, files, key, set->samples()));
    followed->plan_ = std::make_unique<LogPlan>(followed->bytes_, chunk, budget);
    return followed;
  }
  return nullptr;
}

FollowedJob::Step FollowedJob::follow() {
  const auto job = book_.orders().all().find(key_);
  const SampleSet* set = book_.set(key_.second);
  if (job == book_.orders().all().end() || set == nullptr) return {.gone = true};
  order_ = &job->second.order;
  Step step;
  if (!begun_ || order_->epoch() != epoch_) {
    begun_ = true;
    expected_ = false;
    look_at_ = 0;
    epoch_ = order_->epoch();
    placed_ = 0;
    std::ranges::fill(position_, kNone);
    map_files();
    step.turned = plan_->begin_epoch({});
  } else if (set->known() > mapped_ + mapped_ / 10) {
    map_files();
  }
  place();
  step.expected = expect();
  return step;
}

void FollowedJob::map_files() {
  const SampleSet* set = book_.set(key_.second);
  mapped_ = set->known();
  sample_.assign(size_t{files_.size()} + 1, kNone);
  set->for_each_known([&](uint64_t index) {
    const std::span<const Extent> parts = set->parts(index);
    if (parts.size() == 1 && parts.front().file.is_whole()) {
      sample_[number(parts.front().file.whole())] = static_cast<uint32_t>(index);
    }
    return true;
  });
}

// Orders are published in pieces.
void FollowedJob::place() {
  for (; placed_ < order_->size(); ++placed_) {
    const SampleId sample = order_->order()[placed_];
    if (sample < position_.size()) position_[sample] = static_cast<uint32_t>(placed_);
  }
}

// This epoch's order is whole before the next one's begins to be published. In a job's first epoch
// it is known before the size of any file: that waits until enough of them have come.
bool FollowedJob::expect() {
  const std::span<const uint32_t> following = order_->later().following(order_->epoch() + 1);
  if (expected_ || following.empty() || following.size() < order_->size()) return false;
  const uint64_t enough = std::min<uint64_t>(kKnown, following.size() / kKnownShare + 1);
  const uint64_t sizes = files_.known_sizes();
  if (sizes < std::max(look_at_, enough)) return false;
  std::vector<SampleId> next;
  next.reserve(following.size());
  const auto add = [&](std::span<const uint32_t> order) {
    for (const uint32_t sample : order) {
      if (sample < bytes_.size() && may_be_logged(sample)) next.push_back(sample);
    }
  };
  add(following);
  const auto known = static_cast<uint64_t>(
      std::ranges::count_if(next, [this](SampleId sample) { return bytes_[sample] != 0; }));
  // What is only expected may not come: what this epoch reads and that does not is kept, too.
  if (order_->later().is_expected()) {
    std::vector<bool> has(bytes_.size());
    for (const SampleId sample : next) has[sample] = true;
    for (const uint32_t& sample : order_->order()) {
      if (sample < has.size() && !has[sample]) add({&sample, 1});
    }
  }
  // Sizes of other datasets' files may be among them; a look goes through all of the order.
  look_at_ = sizes + std::max(enough, sizes / kKnownShare);
  if (known < enough) return false;
  expected_ = true;
  plan_->expect(next);
  return true;
}

// As far as is known. Learns the sample's size.
bool FollowedJob::may_be_logged(SampleId sample) {
  if (bytes_[sample] != 0) return true;
  const std::span<const Extent> parts = book_.parts(key_.second, sample);
  if (parts.empty()) return true;
  if (parts.size() > 1 || !parts.front().file.is_whole()) return false;
  const SampleFileId file = parts.front().file.whole();
  if (!files_.knows_bytes(file)) return true;
  return may_have(files_.bytes(file)) && has_bytes(sample, files_.bytes(file));
}

std::optional<SampleId> FollowedJob::sample_of(SampleFileId file) const {
  const size_t at = number(file);
  if (at >= sample_.size() || sample_[at] == kNone) return std::nullopt;
  return sample_[at];
}

SampleFileId FollowedJob::file_of(SampleId sample) const {
  const std::span<const Extent> parts = book_.parts(key_.second, sample);
  return parts.size() == 1 ? parts.front().file.whole() : SampleFileId{};
}

bool FollowedJob::is_in_order(uint32_t chunk) const {
  const LogIndex& log = plan_->log(plan_->current());
  if (chunk >= log.chunks()) return false;
  const std::span<const SampleId> members = log.members(chunk);
  uint32_t first = kNone, last = 0;
  for (const SampleId member : members) {
    if (position_[member] == kNone) continue;
    first = std::min(first, position_[member]);
    last = std::max(last, position_[member]);
  }
  return first != kNone && last - first < 2 * members.size();
}

bool FollowedJob::has_bytes(SampleId sample, uint64_t bytes) {
  if (bytes_[sample] == 0 && bytes <= kMostBytes) bytes_[sample] = static_cast<uint32_t>(bytes);
  return bytes_[sample] == bytes;
}

}  // namespace sluice::policy
