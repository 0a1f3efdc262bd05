#include "policy/samples/record_groups.h"

#include <algorithm>

#include "protocol/page.h"

namespace sluice::policy {

// A member was taken, or is not any more.
void RecordGroups::count(const Groups::value_type& member, bool taken) {
  const auto& [key, one] = member;
  const uint64_t begin = one.record.offset / kPage;
  const uint64_t end = (one.record.offset + one.record.length + kPage - 1) / kPage;
  const std::pair of{std::get<SessionId>(key), one.group->dataset};
  uint64_t& bytes = taken_bytes_[of];
  bytes += taken ? (end - begin) * kPage : -((end - begin) * kPage);
  if (bytes == 0) taken_bytes_.erase(of);
}

template <typename Test>
void RecordGroups::remove_if(Test test) {
  std::erase_if(groups_, [&](const Groups::value_type& member) {
    if (!test(member)) return false;
    if (member.second.taken) count(member, false);
    return true;
  });
}

void RecordGroups::add(SessionId session, DatasetId dataset, std::span<const Extent> records) {
  const auto group = std::make_shared<const Group>(
      Group{dataset, std::vector<Extent>(records.begin(), records.end())});
  for (const Extent& record : records) {
    pass(session, record);
    groups_[key(session, record)] = {group, record, false};
  }
}

std::vector<Extent> RecordGroups::find(SessionId session, const Extent& record) const {
  const auto found = groups_.find(key(session, record));
  if (found == groups_.end() || found->second.taken || found->second.record != record) return {};
  std::vector<Extent> together = {record};
  const auto& group = found->second.group;
  for (const Extent& one : group->records) {
    const auto at = groups_.find(key(session, one));
    if (at == groups_.end() || at->second.group != group || at->second.taken) continue;
    if (one != record) together.push_back(one);
  }
  return together;
}

void RecordGroups::take(SessionId session, std::span<const Extent> records) {
  for (const Extent& record : records) {
    const auto at = groups_.find(key(session, record));
    if (at == groups_.end() || std::exchange(at->second.taken, true)) continue;
    count(*at, true);
  }
}

void RecordGroups::pass(SessionId session, const Extent& record) {
  const auto at = groups_.find(key(session, record));
  if (at == groups_.end()) return;
  if (at->second.taken) count(*at, false);
  groups_.erase(at);
}

void RecordGroups::for_each_taken(const std::function<void(const Extent&)>& visit) const {
  for (const auto& [key, member] : groups_) {
    if (member.taken) visit(member.record);
  }
}

std::vector<Extent> RecordGroups::taken_in(SessionId session, FileId file, uint64_t begin,
                                           uint64_t end) const {
  std::vector<Extent> taken;
  auto at = groups_.lower_bound({session, file, begin});
  if (at != groups_.begin()) --at;  // it may extend into the range
  for (; at != groups_.end() && at->first < Key{session, file, end}; ++at) {
    const Extent& record = at->second.record;
    const bool here = std::get<SessionId>(at->first) == session &&
                      std::get<FileId>(at->first) == file && record.offset + record.length > begin;
    if (here && at->second.taken) taken.push_back(record);
  }
  return taken;
}

std::vector<Extent> RecordGroups::taken_in(FileId file, uint64_t begin, uint64_t end) const {
  std::vector<Extent> taken;
  for (const auto& [of, bytes] : taken_bytes_) {
    const std::vector<Extent> some = taken_in(of.first, file, begin, end);
    taken.insert(taken.end(), some.begin(), some.end());
  }
  return taken;
}

uint64_t RecordGroups::taken_bytes(DatasetId dataset) const {
  uint64_t most = 0;
  for (const auto& [of, bytes] : taken_bytes_) {
    if (of.second == dataset) most = std::max(most, bytes);
  }
  return most;
}

void RecordGroups::remove_dataset(SessionId session, DatasetId dataset) {
  remove_if([=](const auto& one) {
    return std::get<SessionId>(one.first) == session && one.second.group->dataset == dataset;
  });
}

void RecordGroups::remove_file(FileId file) {
  remove_if([file](const auto& one) { return std::get<FileId>(one.first) == file; });
}

void RecordGroups::remove_session(SessionId session) {
  remove_if([session](const auto& one) { return std::get<SessionId>(one.first) == session; });
}

}  // namespace sluice::policy
