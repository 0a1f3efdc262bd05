// Records that are to be read together as soon as one of them is wanted, those of a chunk of a file
// that is its own chunks, and those that were and whose turn has not come. Pure; one thread. About
// 150 bytes a record, until it is read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "policy/samples/extent.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class RecordGroups {
 public:
  // Records of followed files. One that was in another group is only in this one.
  void add(SessionId session, DatasetId dataset, std::span<const Extent> records);
  // The record, and after it those of its group that were not taken, as far as no later group has
  // them. Empty: it is in none, or was taken.
  std::vector<Extent> find(SessionId session, const Extent& record) const;
  // They are being read, or in memory, until each is passed.
  void take(SessionId session, std::span<const Extent> records);
  // It was read by a sample.
  void pass(SessionId session, const Extent& record);
  // What was taken and not passed: all; what has bytes of [begin, end), of one session or of any.
  void for_each_taken(const std::function<void(const Extent&)>& visit) const;
  std::vector<Extent> taken_in(SessionId session, FileId file, uint64_t begin, uint64_t end) const;
  std::vector<Extent> taken_in(FileId file, uint64_t begin, uint64_t end) const;
  // Bytes of the dataset's records that were taken and not passed, in whole pages, those that
  // records share once for each: of the session that has most.
  uint64_t taken_bytes(DatasetId dataset) const;
  void remove_dataset(SessionId session, DatasetId dataset);
  void remove_file(FileId file);
  void remove_session(SessionId session);
  bool empty() const { return groups_.empty(); }

 private:
  struct Group {
    DatasetId dataset{};
    std::vector<Extent> records;
  };
  struct Member {
    std::shared_ptr<const Group> group;
    Extent record;
    bool taken = false;
  };
  // A record by its first byte. Those that are known as pages may share it: the last one counts.
  using Key = std::tuple<SessionId, FileId, uint64_t>;
  using Groups = std::map<Key, Member>;
  static Key key(SessionId session, const Extent& record) {
    return {session, record.file.followed(), record.offset};
  }
  void count(const Groups::value_type& member, bool taken);
  template <typename Test>
  void remove_if(Test test);

  Groups groups_;
  std::map<std::pair<SessionId, DatasetId>, uint64_t> taken_bytes_;  // > 0
};

}  // namespace sluice::policy
