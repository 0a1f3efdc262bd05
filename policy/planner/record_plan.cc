#include "policy/planner/record_plan.h"

#include <algorithm>
#include <utility>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

uint64_t first_page(std::span<const FilePages> pages) { return pages.front().range.begin / kPage; }

}  // namespace

void RecordPlan::track(DatasetId dataset, PolicyKind policy, uint64_t samples, uint64_t bytes) {
  const auto [at, added] = datasets_.try_emplace(dataset);
  if (!added) return;
  at->second.policy = policy_info(policy).make(bytes, static_cast<uint32_t>(samples));
  at->second.kind = policy;
}

void RecordPlan::change_policy(DatasetId dataset, PolicyKind policy, uint64_t samples,
                               std::vector<FilePages>* freed) {
  Dataset& entry = datasets_.at(dataset);
  const std::unique_ptr<Policy> before = std::move(entry.policy);
  entry.policy = policy_info(policy).make(before->capacity(), static_cast<uint32_t>(samples));
  entry.kind = policy;
  std::vector<SampleId> retained;
  for (const auto& [sample, pages] : entry.retained) {
    entry.policy->set_importance(sample, before->importance(sample));
    entry.policy->set_page(sample, first_page(pages));
    retained.push_back(sample);
  }
  std::vector<FilePages> removed;
  for (const SampleId sample : retained) {
    uint64_t bytes = 0;
    for (const FilePages& piece : entry.retained.at(sample)) bytes += piece.range.length();
    const Decision decision = entry.policy->access(number(kNoSession), sample, bytes, &victims_);
    for (const SampleId victim : victims_) evict(entry, victim, &removed);
    if (decision == Decision::kPass) evict(entry, sample, &removed);
  }
  free_unowned(removed, freed);
}

void RecordPlan::set_capacity(DatasetId dataset, uint64_t bytes, std::vector<FilePages>* freed) {
  Dataset& entry = datasets_.at(dataset);
  entry.policy->set_capacity(bytes, &victims_);
  std::vector<FilePages> removed;
  for (const SampleId victim : victims_) evict(entry, victim, &removed);
  free_unowned(removed, freed);
}

void RecordPlan::on_read(SessionId session, DatasetId dataset, SampleId sample,
                         std::vector<FilePages> pages, std::vector<FilePages>* freed) {
  Dataset& entry = datasets_.at(dataset);
  uint64_t bytes = 0;
  for (const FilePages& piece : pages) bytes += piece.range.length();
  ++entry.reads;
  entry.bytes += bytes;
  std::vector<FilePages> removed;
  const auto known = entry.retained.find(sample);
  if (known != entry.retained.end() &&
      known->second != pages) {  // the sample's location has changed
    entry.policy->drop(sample);
    evict(entry, sample, &removed);
  }
  if (!pages.empty()) entry.policy->set_page(sample, first_page(pages));
  const Decision decision = entry.policy->access(number(session), sample, bytes, &victims_);
  for (const SampleId victim : victims_) evict(entry, victim, &removed);
  if (decision == Decision::kPass) {
    removed.insert(removed.end(), pages.begin(), pages.end());
  } else if (entry.retained.count(sample) == 0) {
    for (const FilePages& piece : pages) owners_[piece.file].add(piece.range);
    entry.retained.emplace(sample, std::move(pages));
  }
  free_unowned(removed, freed);
}

void RecordPlan::evict(Dataset& dataset, SampleId sample, std::vector<FilePages>* removed) {
  const auto at = dataset.retained.find(sample);
  if (at == dataset.retained.end()) return;
  for (const FilePages& piece : at->second) {
    const auto owners = owners_.find(piece.file);
    owners->second.release(piece.range);
    if (owners->second.empty()) owners_.erase(owners);
  }
  removed->insert(removed->end(), at->second.begin(), at->second.end());
  dataset.retained.erase(at);
}

void RecordPlan::free_unowned(std::span<const FilePages> pages,
                              std::vector<FilePages>* freed) const {
  std::vector<Range> parts;
  for (const FilePages& piece : pages) {
    parts.clear();
    unowned(piece.file, piece.range, &parts);
    for (const Range& part : parts) freed->push_back({piece.file, part});
  }
}

void RecordPlan::unowned(FileId file, Range range, std::vector<Range>* parts) const {
  const auto owners = owners_.find(file);
  if (owners != owners_.end()) {
    owners->second.unowned(range, parts);
  } else if (range.length() != 0) {
    parts->push_back(range);
  }
}

void RecordPlan::predict(DatasetId dataset, std::span<const SampleId> order) {
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end()) return;
  at->second.policy->clear_order();
  at->second.policy->append_order(order);
}

std::optional<PolicyKind> RecordPlan::policy(DatasetId dataset) const {
  const auto at = datasets_.find(dataset);
  return at == datasets_.end() ? std::nullopt : std::optional(at->second.kind);
}

void RecordPlan::set_importance(DatasetId dataset, SampleId sample, float importance) {
  const auto at = datasets_.find(dataset);
  if (at != datasets_.end()) at->second.policy->set_importance(sample, importance);
}

bool RecordPlan::retains(DatasetId dataset, SampleId sample) const {
  const auto at = datasets_.find(dataset);
  return at != datasets_.end() && at->second.policy->retained(sample);
}

void RecordPlan::untrack(DatasetId dataset) {
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end()) return;
  std::vector<FilePages> removed;
  while (!at->second.retained.empty())
    evict(at->second, at->second.retained.begin()->first, &removed);
  datasets_.erase(at);
}

void RecordPlan::remove_session(SessionId session) {
  for (auto& [id, dataset] : datasets_) dataset.policy->end_job(number(session));
}

void RecordPlan::remove_file(FileId file) {
  std::vector<FilePages> removed;
  for (auto& [id, dataset] : datasets_) {
    std::vector<SampleId> samples;
    for (const auto& [sample, pages] : dataset.retained) {
      const auto in_file = [file](const FilePages& piece) { return piece.file == file; };
      if (std::any_of(pages.begin(), pages.end(), in_file)) samples.push_back(sample);
    }
    for (const SampleId sample : samples) {
      dataset.policy->drop(sample);
      evict(dataset, sample, &removed);
    }
  }
}

std::vector<DatasetId> RecordPlan::tracked() const {
  std::vector<DatasetId> all;
  for (const auto& [id, dataset] : datasets_) all.push_back(id);
  return all;
}

uint64_t RecordPlan::capacity(DatasetId dataset) const {
  const auto at = datasets_.find(dataset);
  return at == datasets_.end() ? 0 : at->second.policy->capacity();
}

uint64_t RecordPlan::mean_bytes(DatasetId dataset) const {
  const auto at = datasets_.find(dataset);
  return at == datasets_.end() || at->second.reads == 0 ? 0 : at->second.bytes / at->second.reads;
}

uint64_t RecordPlan::retained() const {
  uint64_t sum = 0;
  for (const auto& [id, dataset] : datasets_) sum += dataset.policy->used();
  return sum;
}

uint64_t RecordPlan::footprint() const {
  uint64_t sum = 0;
  for (const auto& [id, dataset] : datasets_) sum += dataset.policy->footprint();
  return sum;
}

}  // namespace sluice::policy
