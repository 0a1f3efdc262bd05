#include "policy/planner/record_drops.h"

#include <algorithm>

#include "policy/planner/stream_planner.h"
#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kIdleNs = 1'000'000'000;   // streams that are idle for longer do not count
constexpr uint64_t kSpentNs = 20'000'000;     // between two rounds
constexpr uint64_t kVisitNs = 20'000;         // added to that for each sample ahead visited
constexpr uint64_t kManyVisitNs = 2'000;      // likewise, where much waits to be dropped
constexpr uint64_t kMany = 32 << 20;          // bytes
constexpr uint64_t kMostDropping = 64 << 20;  // bytes being dropped
constexpr uint64_t kStuckNs = 250'000'000;    // until mapped pages are retried; doubles each time
constexpr unsigned kStuckTries = 5;
constexpr size_t kMostStuck = 4096;

}  // namespace

std::map<FileId, IntervalSet> wanted_by_samples(const SampleBook* samples, uint64_t* visited) {
  std::map<FileId, IntervalSet> wanted;
  if (samples == nullptr) return wanted;
  samples->for_each_ahead([&](const Extent& part) {
    ++*visited;
    if (const FileId file = part.file.followed(); file != kNoFile) {
      wanted[file].add(pages_of(part, UINT64_MAX));
    }
  });
  return wanted;
}

Range pages_of(const Extent& extent, uint64_t file_size) {
  const uint64_t end = (extent.offset + extent.length + kPage - 1) / kPage * kPage;
  return {extent.offset / kPage * kPage, std::min(end, file_size)};
}

void RecordDrops::hold(const std::vector<FilePages>& pages, uint64_t most) {
  for (const FilePages& piece : pages) {
    held_bytes_ += piece.range.length();
    held_.push_back(piece);
  }
  while (held_bytes_ > most) {
    const FilePages& piece = held_.front();
    held_bytes_ -= piece.range.length();
    spent_bytes_ += piece.range.length();
    spent_[piece.file].add(piece.range);
    held_.pop_front();
  }
}

void RecordDrops::drop(const PlannedDrop& drop, PlannedFile& file,
                       std::vector<PlannedDrop>* drops) {
  drops->push_back(drop);
  dropping_bytes_ += drop.range.length();
  file.pages.on(PageEvent::kDropBegun, drop.range);
}

// Drops pages that no other sample needs, as far as is known without visiting all samples ahead:
// what those need waits, is in flight, or is in memory for a session.
void RecordDrops::drop_between(std::vector<PlannedDrop>* drops) {
  constexpr uint16_t kNeeded = kReading | kWaiting | kFound | kReady;
  for (auto& [id, between] : between_) {
    const auto at = files_.find(id);
    if (at == files_.end()) continue;
    PlannedFile& file = at->second;
    for (const Range& piece : between.pieces()) {
      std::vector<Range> unowned;
      records_.unowned(id, piece, &unowned);
      IntervalSet left;
      for (const Range& part : unowned) left.add(part);
      for (const Range& part : file.pages.pieces(piece, kNeeded)) left.remove(part);
      for (const Range& part : left.pieces()) drop({id, part, PlannedDrop::kSpent}, file, drops);
    }
  }
  between_.clear();
}

bool RecordDrops::Round::due(uint64_t now_ns, uint64_t visit_ns) const {
  return now_ns >= began_ns + kSpentNs + visited * visit_ns;
}

void RecordDrops::drops(uint64_t now_ns, std::vector<PlannedDrop>* drops) {
  if (dropping_bytes_ < kMostDropping) drop_between(drops);
  const bool spent = !spent_.empty() && dropping_bytes_ < kMostDropping &&
                     last_spent_.due(now_ns, spent_bytes_ > kMany ? kManyVisitNs : kVisitNs);
  const bool stuck_due =
      !stuck_.empty() && stuck_.front().next_ns <= now_ns && last_stuck_.due(now_ns, kVisitNs);
  if (!spent && !stuck_due) return;
  uint64_t visited = 0;
  const Wanted wanted = wanted_by_samples(samples_, &visited);
  last_stuck_ = {now_ns, visited};
  if (spent) last_spent_ = last_stuck_;
  while (!stuck_.empty() && stuck_.front().next_ns <= now_ns) {
    const Stuck stuck = stuck_.front();
    stuck_.pop_front();
    drop_unneeded({stuck.pages.file, stuck.pages.range, PlannedDrop::kSpent, stuck.tries + 1},
                  wanted, now_ns, drops);
  }
  if (!spent) return;
  for (const auto& [id, pages] : spent_) {
    for (const Range& piece : pages.pieces()) {
      drop_unneeded({id, piece, PlannedDrop::kSpent}, wanted, now_ns, drops);
    }
  }
  spent_.clear();
  spent_bytes_ = 0;
}

// Pages that a sample will read or is reading stay: they are spent again once it was read.
void RecordDrops::drop_unneeded(const PlannedDrop& all, const Wanted& wanted, uint64_t now_ns,
                                std::vector<PlannedDrop>* drops) {
  const auto at = files_.find(all.file);
  if (at == files_.end()) return;
  PlannedFile& file = at->second;
  if (StreamPlanner::needed(file, all.range, kIdleNs, now_ns)) return;
  const auto samples = wanted.find(all.file);
  std::vector<Range> unowned;
  records_.unowned(all.file, all.range, &unowned);
  for (const Range& part : unowned) {
    IntervalSet left;
    left.add(part);
    if (samples != wanted.end()) {
      for (const Range& piece : samples->second.pieces_in(part)) left.remove(piece);
    }
    for (const Range& piece : file.pages.pieces(part, kReading | kReady)) left.remove(piece);
    if (samples_ != nullptr) {
      for (const Extent& one : samples_->groups().taken_in(all.file, part.begin, part.end)) {
        left.remove(pages_of(one, file.size));
      }
    }
    for (const Range& piece : left.pieces()) {
      drop({all.file, piece, all.why, all.tries}, file, drops);
    }
  }
}

void RecordDrops::on_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns) {
  dropping_bytes_ -= std::min(dropping_bytes_, drop.range.length());
  const auto at = files_.find(drop.file);
  if (at == files_.end()) return;
  at->second.pages.on(PageEvent::kDropEnded, drop.range);
  // A process still maps them: it touched pages beside them, or has not finished its batch.
  if (left == 0 || drop.tries >= kStuckTries || stuck_.size() >= kMostStuck) return;
  const Stuck stuck{{drop.file, drop.range}, drop.tries, now_ns + (kStuckNs << drop.tries)};
  const auto later =
      std::upper_bound(stuck_.begin(), stuck_.end(), stuck,
                       [](const Stuck& a, const Stuck& b) { return a.next_ns < b.next_ns; });
  stuck_.insert(later, stuck);
}

void RecordDrops::remove_file(FileId file) {
  spent_.erase(file);
  between_.erase(file);
  std::erase_if(stuck_, [file](const Stuck& stuck) { return stuck.pages.file == file; });
  std::erase_if(held_, [&](const FilePages& pages) {
    if (pages.file == file) held_bytes_ -= pages.range.length();
    return pages.file == file;
  });
}

}  // namespace sluice::policy
