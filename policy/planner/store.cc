#include "policy/planner/store.h"

#include <algorithm>
#include <vector>

#include "protocol/page.h"

namespace sluice::policy {

FetchVerdict Store::judge(SessionId session, const Extent& part, uint64_t now_ns) {
  if (!part.file.is_whole()) return records_.judge(session, part, now_ns);
  if (!accounts_.prefetches(session)) return FetchVerdict::kNever;
  return files_->judge(part.file.whole(), now_ns, session);
}

void Store::take(const WantedExtent& wanted, uint64_t now_ns, std::vector<PlannedFetch>* fetches) {
  if (wanted.extent.file.is_whole()) {
    files_->start_with_companions(wanted.extent.file.whole(), wanted.session, now_ns,
                                  wanted.dataset, fetches);
  } else {
    records_.take(wanted, now_ns);
  }
}

void Store::read_together(SessionId session, DatasetId dataset, std::span<const uint32_t> samples) {
  std::vector<Extent> records;
  for (const uint32_t sample : samples) {
    const std::span<const Extent> parts = samples_->parts(dataset, sample);
    if (parts.empty() || is_of_files(parts)) continue;
    const Extent& part = main_part(parts);
    if (records.empty() || part.file == records.front().file) records.push_back(part);
  }
  if (records.size() > 1) samples_->groups().add(session, dataset, records);
}

bool Store::is_ahead(SessionId session, DatasetId dataset, uint32_t sample) {
  const std::span<const Extent> parts = samples_->parts(dataset, sample);
  return !parts.empty() && std::ranges::all_of(parts, [&](const Extent& part) {
    const std::optional<Presence> found = presence(session, part, false);
    return found && found->here + found->coming >= found->wanted;
  });
}

std::optional<Presence> Store::presence(SessionId session, const Extent& part, bool own_order) {
  if (!part.file.is_whole()) return records_.presence(session, part, own_order);
  const SampleFileId file = part.file.whole();
  if (refused(part, true) != FileTable::Refused::kNo) return std::nullopt;
  const CopyTable::Has has = files_->table().has(file);
  const bool here = has == CopyTable::Has::kStaged;
  return Presence{1, here ? 1U : 0U, has == CopyTable::Has::kComing ? 1U : 0U,
                  here ? Demand{} : files_->demand(file)};
}

Hit Store::on_read(SessionId session, const Extent& part) {
  return part.file.is_whole() ? files_->on_read(session, part.file.whole())
                              : records_.on_read(session, part);
}

FileTable::Refused Store::refused(const Extent& part, bool stages) const {
  if (!part.file.is_whole()) return FileTable::Refused::kNo;
  return stages ? files_->files().refused(part.file.whole()) : FileTable::Refused::kForGood;
}

bool Store::offers_copies(std::span<const Extent> parts, uint64_t time_ns) const {
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [&](const Extent& part) {
    return part.file.is_whole() && files_->table().offers(part.file.whole(), time_ns);
  });
}

void Store::drop(std::span<const Extent> parts) {
  for (const Extent& part : parts) {
    if (part.file.is_whole()) files_->drop(part.file.whole());
  }
}

double Store::alone_ns(std::span<const Extent> parts) const {
  double sum = 0;
  for (const Extent& part : parts) {
    if (part.file.is_whole()) sum += files_->demand(part.file.whole()).alone_ns;
  }
  return sum;
}

double Store::parallel_ns(std::span<const Extent> parts) const {
  double sum = 0;
  for (const Extent& part : parts) {
    sum += part.file.is_whole() ? files_->mounts().file_ns(part.file.whole())
                                : records_.parallel_ns(part);
  }
  return sum;
}

uint64_t Store::charge(std::span<const Extent> parts, Kinds retained) const {
  uint64_t sum = 0;
  for (const Extent& part : parts) {
    const bool whole = part.file.is_whole();
    const bool refused = whole && this->refused(part, true) != FileTable::Refused::kNo;
    if (refused || !(whole ? retained.files : retained.records)) return 0;
    sum += whole ? FileTable::charge(files_->files().bytes(part.file.whole()))
                 : (part.length + kPage - 1) / kPage * kPage;
  }
  return sum;
}

template <typename Test>
bool Store::all_parts(DatasetId dataset, uint32_t sample, Test test) const {
  const std::span<const Extent> parts = samples_->parts(dataset, sample);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [&](const Extent& part) {
    return part.file.is_whole() ? test(part.file.whole())
                                : retention_.records().retains(dataset, sample);
  });
}

bool Store::in_memory(DatasetId dataset, uint32_t sample) const {
  return all_parts(dataset, sample, [&](SampleFileId file) {
    return files_->table().has(file) == CopyTable::Has::kStaged;
  });
}

bool Store::retains(DatasetId dataset, uint32_t sample) const {
  return all_parts(dataset, sample,
                   [&](SampleFileId file) { return files_->table().retains(file); });
}

void Store::set_importance(DatasetId dataset, uint32_t sample, float importance) {
  for (const Extent& part : samples_->parts(dataset, sample)) {
    if (part.file.is_whole()) files_->room().set_importance(part.file.whole(), importance);
  }
  retention_.set_importance(dataset, sample, importance);
}

}  // namespace sluice::policy
