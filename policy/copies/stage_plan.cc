#include "policy/copies/stage_plan.h"

#include <algorithm>
#include <utility>

namespace sluice::policy {
namespace {

using Counts = CopyMounts::Counts;
using State = StagedCopy::State;

// A reader of an original in the page cache still opens it: about half of the cost is not saved.
constexpr uint64_t kOpenShare = 2;
// Fetches from a log at a time, and their bytes: the chunks that are in memory for them.
constexpr unsigned kMostLogged = 512;
constexpr uint64_t kMostLoggedBytes = 64 << 20;

}  // namespace

FetchVerdict StagePlan::judge(SampleFileId file, uint64_t now_ns, SessionId session) {
  if (files_.refused(file) != FileTable::Refused::kNo) return FetchVerdict::kNever;
  StagedCopy* copy = table_.find(file);
  if (copy != nullptr && copy->readers == 0 && copy->state != State::kFetching && brings &&
      brings(file)) {
    room_.evict(file);
    copy = nullptr;
  }
  const uint64_t source = copy == nullptr ? source_of(file, session) : copy->device;
  const CopyMounts::Mount& mount = mounts_.at(source);
  if (copy != nullptr) {
    const bool old =
        stale_ns_ != 0 && now_ns - std::min(now_ns, copy->validated_ns) > stale_ns_ / 2;
    const bool check = copy->state != State::kFetching && old && !copy->checking && !copy->to_cache;
    const bool needed_again = copy->state == State::kSpent;
    if (needed_again && !room_.may_be_ahead(copy->charged)) return FetchVerdict::kLater;
    ++copy->readers;
    if (needed_again) table_.set_state(file, *copy, State::kAhead);
    if (!check) {
      // What a chunk brought is ahead, too: further chunks would displace it.
      const bool ahead = copy->state == State::kFetching || copy->brought;
      return ahead ? FetchVerdict::kNever : FetchVerdict::kHere;
    }
    if (!mount.busy(now_ns)) return FetchVerdict::kTake;
    // It is not the order that waits for its mount: what comes after it may have another.
    auto& validated = validated_[copy->device];
    const auto older = [](uint64_t when, const auto& one) { return when < one.second; };
    validated.insert(
        std::upper_bound(validated.begin(), validated.end(), copy->validated_ns, older),
        {file, copy->validated_ns});
    return FetchVerdict::kNever;
  }
  const uint64_t wanted = FileTable::charge(files_.bytes(file));
  const bool busy =
      CopyMounts::is_log(source)
          ? mount.in_flight >= std::min<uint64_t>(kMostLogged, kMostLoggedBytes / (wanted + 1))
          : mount.busy(now_ns);
  if ((busy && mount.in_flight > 0) || !room_.may_add_copy()) return FetchVerdict::kLater;
  if (wanted > room_.limit()) {
    files_.refuse(file);
    return FetchVerdict::kNever;
  }
  return room_.make_room_ahead(wanted) ? FetchVerdict::kTake : FetchVerdict::kLater;
}

PlannedFetch StagePlan::start(SampleFileId file, SessionId session, uint64_t now_ns,
                              DatasetId dataset) {
  StagedCopy* copy = table_.find(file);
  const bool check = copy != nullptr;
  if (check) {
    copy->checking = true;
    copy->session = session;
  } else {
    copy = &begin_fetch(file, session, dataset);
    copy->readers = 1;
    copy->to_cache = originals_.contains(dataset) || files_.only_locked(file);
  }
  copy->token = next_token_++;
  mounts_.begin(*copy, now_ns);
  return {copy->token, file, session, copy->device, check, copy->to_cache};
}

uint64_t StagePlan::source_of(SampleFileId file, SessionId session) const {
  const uint64_t mount = mounts_.device_of(file, session);
  // Originals are read where they are, whatever a log has.
  const bool copied = originals_.empty() && !files_.only_locked(file);
  return copied && is_logged && is_logged(file) ? CopyMounts::log_of(mount) : mount;
}

StagedCopy& StagePlan::begin_fetch(SampleFileId file, SessionId session, DatasetId dataset) {
  StagedCopy& copy = table_.add(file, FileTable::charge(files_.bytes(file)));
  copy.device = source_of(file, session);
  copy.dataset = dataset;
  copy.session = session;
  return copy;
}

void StagePlan::start_with_companions(SampleFileId file, SessionId session, uint64_t now_ns,
                                      DatasetId dataset, std::vector<PlannedFetch>* fetches) {
  PlannedFetch first = start(file, session, now_ns, dataset);
  const Companions others =
      companions && !first.check && !first.to_cache ? companions(file) : Companions();
  if (!others.files.empty()) first.chunk_for = first.token;
  if (others.package && !others.files.empty()) {
    first.package = true;
    mounts_.begin_package(now_ns);
  }
  fetches->push_back(first);
  for (const SampleFileId other : others.files) {
    if (table_.find(other) != nullptr || files_.refused(other) != FileTable::Refused::kNo) continue;
    if (!room_.may_add_copy() || !room_.make_room(FileTable::charge(files_.bytes(other)))) return;
    StagedCopy& copy = begin_fetch(other, session, dataset);
    copy.companion = true;
    copy.device = others.package ? CopyMounts::kPackages : CopyMounts::kChunks;
    copy.token = next_token_++;
    mounts_.begin(copy, now_ns);
    fetches->push_back({.token = copy.token,
                        .file = other,
                        .session = session,
                        .device = copy.device,
                        .chunk_for = first.token});
  }
}

bool StagePlan::original_is_ahead(SampleFileId file) const {
  const StagedCopy* const copy = table_.find(file);
  return copy != nullptr && copy->to_cache && copy->state == State::kAhead;
}

StagedCopy* StagePlan::find(const PlannedFetch& fetch) {
  StagedCopy* const copy = table_.find(fetch.file);
  return copy == nullptr || copy->token != fetch.token ? nullptr : copy;
}

bool StagePlan::on_staged(const PlannedFetch& fetch, uint64_t device, uint64_t bytes,
                          uint64_t charged, uint64_t now_ns, bool from_storage, FetchTime time,
                          uint64_t validated_ns) {
  StagedCopy* const copy = find(fetch);
  if (copy == nullptr) return false;
  // Fetches in flight at the same time share the storage's time.
  copy->took_ns = (now_ns - std::min(now_ns, copy->issued_ns)) /
                  std::max(1U, mounts_.at(copy->device).in_flight);
  mounts_.end(*copy, bytes, from_storage ? Counts::kRateAndLatency : Counts::kRate, now_ns, time);
  if (fetch.package && !from_storage) mounts_.end_package(time.took_ns);
  files_.set_bytes(fetch.file, bytes);
  mounts_.set_device(fetch.file, device);
  if (copy->dropped || charged > room_.limit()) {
    table_.remove(fetch.file);
    return false;
  }
  // Counted at `device` from now on; this fetch may have been the first from there.
  if (CopyMounts::Mount& mount = mounts_.at(device); mount.files == 0) {
    mount.files = 1;
    mount.bytes = bytes;
    mount.charged = charged;
  }
  copy->device = device;
  copy->bytes = bytes;
  copy->staged_ns = now_ns;
  if (!copy->to_cache) {
    note_validated(fetch.file, *copy, validated_ns != 0 ? validated_ns : copy->issued_ns);
  }
  table_.set_charged(*copy, charged);
  copy->brought = std::exchange(copy->companion, false);
  // It came with another's chunk, or its reader's epoch was left and a later one reads it.
  if (copy->readers == 0 && !copy->to_cache && (copy->brought || copy->awaited > 0)) {
    table_.set_state(fetch.file, *copy, State::kRead);
    room_.fit_policy();
    room_.offer_unread(fetch.file, *copy);
  } else {
    // Without a reader that waits for it, its reader read the original meanwhile.
    table_.set_state(fetch.file, *copy, copy->readers > 0 ? State::kAhead : State::kSpent);
  }
  room_.make_room(0);
  return table_.find(fetch.file) != nullptr;
}

bool StagePlan::on_valid(const PlannedFetch& fetch) {
  StagedCopy* const copy = find(fetch);
  if (copy == nullptr || !copy->checking) return false;
  mounts_.end(*copy, 0, Counts::kNot, 0);
  copy->checking = false;
  note_validated(fetch.file, *copy, copy->issued_ns);
  return true;
}

void StagePlan::note_validated(SampleFileId file, StagedCopy& copy, uint64_t time_ns) {
  copy.validated_ns = time_ns;
  // Oldest first, about.
  auto& validated = validated_[copy.device];
  if (!validated.empty() && time_ns < validated.front().second) {
    validated.emplace_front(file, time_ns);
  } else {
    validated.emplace_back(file, time_ns);
  }
}

void StagePlan::start_refetches(uint64_t now_ns, std::vector<PlannedFetch>* fetches) {
  for (size_t left = refetch_.size(); left > 0; --left) {
    const auto [file, session] = refetch_.front();
    refetch_.pop_front();
    const FetchVerdict verdict = judge(file, now_ns, session);
    if (verdict == FetchVerdict::kLater) refetch_.emplace_back(file, session);
    if (verdict == FetchVerdict::kTake) fetches->push_back(start(file, session, now_ns));
  }
}

void StagePlan::start_checks(uint64_t now_ns, std::vector<PlannedFetch>* checks) {
  start_refetches(now_ns, checks);
  if (stale_ns_ == 0) return;  // each reader validates the copy itself
  for (auto& [device, validated] : validated_) {
    while (!validated.empty() && now_ns - validated.front().second > stale_ns_ / 2) {
      const auto [file, when] = validated.front();
      const StagedCopy* copy = table_.find(file);
      if (copy != nullptr && copy->validated_ns == when && copy->readers > 0 && !copy->checking) {
        if (mounts_.at(device).busy(now_ns)) break;
        checks->push_back(start(file, copy->session, now_ns));
      }
      validated.pop_front();
    }
  }
}

void StagePlan::on_failed(const PlannedFetch& fetch, Failure failure) {
  const StagedCopy* const copy = find(fetch);
  if (copy == nullptr) return;
  if (failure == Failure::kMount) files_.refuse_folder(files_.folder(fetch.file));
  if (failure == Failure::kError) files_.refuse(fetch.file);
  if (copy->state != State::kFetching) {
    if (failure == Failure::kAbandoned) return;
    if (failure == Failure::kChanged && copy->readers > 0) {
      refetch_.emplace_back(fetch.file, copy->session);
    }
    room_.evict(fetch.file);
    return;
  }
  mounts_.end(*copy, 0, Counts::kNot, 0);
  table_.remove(fetch.file);
  if (failure == Failure::kFull) room_.on_full();
}

Hit StagePlan::on_read(SessionId session, SampleFileId file) {
  StagedCopy* const copy = table_.find(file);
  if (copy == nullptr ||
      copy->state == State::kFetching) {  // its reader did not wait for the fetch
    room_.passed(file);
    if (copy != nullptr) {
      table_.end_awaited(*copy);
      if (copy->readers > 0) --copy->readers;
    }
    return {};
  }
  Hit hit;
  (copy->read ? hit.again_bytes : hit.first_bytes) = copy->bytes;
  hit.saved = demand(file);
  if (copy->to_cache) hit.saved.alone_ns /= kOpenShare;
  copy->read = true;
  table_.end_awaited(*copy);
  if (copy->readers > 0) --copy->readers;
  if (copy->state == State::kAhead) {
    if (copy->readers > 0) {  // another reader needs it, too
      room_.passed(file);
      return hit;
    }
    table_.set_state(file, *copy, State::kRead);
    room_.fit_policy();
  }
  if (copy->to_cache) {
    room_.passed(file);
    room_.evict(file);
  } else {
    room_.offer(session, file, *copy);
  }
  return hit;
}

void StagePlan::drop(SampleFileId file) {
  StagedCopy* const copy = table_.find(file);
  if (copy != nullptr && copy->state == State::kFetching) {
    copy->dropped = true;
  } else {
    room_.evict(file);
  }
}

template <typename Test>
void StagePlan::drop_if(Test test) {
  std::vector<SampleFileId> found;
  for (const auto& [file, copy] : table_.all()) {
    if (test(copy)) found.push_back(file);
  }
  for (const SampleFileId file : found) drop(file);
}

void StagePlan::drop_all() {
  drop_if([](const StagedCopy&) { return true; });
}

void StagePlan::drop_dataset(DatasetId dataset) {
  drop_if([dataset](const StagedCopy& copy) { return copy.dataset == dataset; });
}

void StagePlan::predict(const UpcomingFiles& coming) {
  files_.retry_refused();
  room_.predict(coming);
}

void StagePlan::need_originals(DatasetId dataset) {
  if (!originals_.insert(dataset).second) return;
  files_.accept_locked();
  drop_dataset(dataset);
}

Demand StagePlan::demand(SampleFileId file) const {
  const StagedCopy* copy = table_.find(file);
  return mounts_.demand(copy == nullptr ? mounts_.device_of(file)
                                        : CopyMounts::origin_of(copy->device));
}

}  // namespace sluice::policy
