#include "policy/chunks/followed_job.h"

#include <algorithm>
#include <span>

namespace sluice::policy {
namespace {

constexpr uint64_t kFewest = 16, kMost = 4096;  // samples of a chunk

}  // namespace

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
    const uint64_t mean = std::max<uint64_t>(files->bytes(first.front().file.whole()), 1);
    followed->plan_ = std::make_unique<LogPlan>(
        followed->bytes_, static_cast<uint32_t>(std::clamp(chunk / mean, kFewest, kMost)), budget);
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

// This epoch's order is whole before the next one's begins to be published. What is of unknown size
// was never fetched, and is left out.
bool FollowedJob::expect() {
  const std::span<const uint32_t> following = order_->following();
  if (expected_ || following.empty() || following.size() < order_->size()) return false;
  expected_ = true;
  std::vector<SampleId> next;
  next.reserve(following.size());
  for (const uint32_t sample : following) {
    if (sample >= bytes_.size()) continue;
    const SampleFileId file = bytes_[sample] == 0 ? file_of(sample) : SampleFileId{};
    if (file != SampleFileId{} && files_.knows_bytes(file)) has_bytes(sample, files_.bytes(file));
    if (bytes_[sample] != 0) next.push_back(sample);
  }
  plan_->expect(next);
  return true;
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
  const std::span<const SampleId> members = plan_->log(plan_->current()).members(chunk);
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
