// Reads of records that wait to be merged with reads of nearby records: one request for several
// records, and for the gaps between them, where a request costs more than those extra bytes. Such a
// run of neighbours is what iCache calls a package (HPCA '23, section III-C); but its records are
// all wanted by the order, not substitutes for others. Pure; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"
#include "policy/util/interval_set.h"

namespace sluice::policy {

struct WaitingRead {
  WantedExtent wanted;
  Range range;  // its pages
};

class Gatherer {
 public:
  void add(const WantedExtent& wanted, Range range);
  // The read that has waited longest, and the reads of its file and session that fit with it into
  // one request of at most `longest` bytes, where `may_bridge` allows each gap on the way. Removes
  // reads for which `is_wanted` is false, and appends them to `removed`. Empty: nothing waits.
  using MayBridge = std::function<bool(const WaitingRead& read, Range gap)>;
  using IsWanted = std::function<bool(const WantedExtent& wanted)>;
  std::vector<WaitingRead> take(uint64_t longest, const MayBridge& may_bridge,
                                const IsWanted& is_wanted, std::vector<WaitingRead>* removed);
  // Remove all reads of a file, or of a session, and append them to `removed`.
  void remove_file(FileId file, std::vector<WaitingRead>* removed);
  void remove_session(SessionId session, std::vector<WaitingRead>* removed);
  // Likewise all reads that are not wanted.
  void remove_unwanted(const IsWanted& is_wanted, std::vector<WaitingRead>* removed);
  bool empty() const { return by_turn_.empty(); }
  uint64_t bytes() const { return bytes_; }  // of all waiting reads

 private:
  // File, session, first byte, turn.
  using Key = std::tuple<FileId, SessionId, uint64_t, uint64_t>;
  using Reads = std::map<Key, WaitingRead>;
  template <typename Test>
  void remove(Test test, std::vector<WaitingRead>* removed);
  Reads::iterator erase(Reads::iterator at);

  uint64_t turn_ = 0, bytes_ = 0;
  Reads reads_;
  std::map<uint64_t, Key> by_turn_;
};

}  // namespace sluice::policy
