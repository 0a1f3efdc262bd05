// Reads of records that are to be made, and wait for others that lie near them: one request for
// several of them, and for what lies between, where a request costs more than those bytes. For
// records this is what a package is in iCache (HPCA '23, section III-C), a run of neighbours; but
// those whom somebody will ask for, and not to stand in for others. Pure; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "policy/samples/sample_book.h"
#include "policy/util/interval_set.h"

namespace sluice::optimizer {

struct WaitingRead {
  WantedExtent wanted;
  Range range;  // its pages
};

class Gatherer {
 public:
  void add(const WantedExtent& wanted, Range range);
  // Whoever waits longest, and after it those of its file and session with whom it makes a read of
  // at most `longest` bytes, where `may_bridge` allows the gap that leads to each of them. Appends
  // those of whom `is_wanted` is false to `gone`; they wait no longer either. Empty: nobody waits.
  using MayBridge = std::function<bool(const WaitingRead& read, Range gap)>;
  using IsWanted = std::function<bool(const WantedExtent& wanted)>;
  std::vector<WaitingRead> take(uint64_t longest, const MayBridge& may_bridge,
                                const IsWanted& is_wanted, std::vector<WaitingRead>* gone);
  // All of a file, or of a session, appended to `gone`.
  void remove_file(uint32_t file, std::vector<WaitingRead>* gone);
  void remove_session(uint32_t session, std::vector<WaitingRead>* gone);
  // And all who are not wanted.
  void remove_unwanted(const IsWanted& is_wanted, std::vector<WaitingRead>* gone);
  bool empty() const { return by_turn_.empty(); }
  uint64_t bytes() const { return bytes_; }  // that wait

 private:
  // File, session, first byte, turn.
  using Key = std::tuple<uint32_t, uint32_t, uint64_t, uint64_t>;
  using Reads = std::map<Key, WaitingRead>;
  template <typename Test>
  void remove(Test test, std::vector<WaitingRead>* gone);
  Reads::iterator erase(Reads::iterator at);

  uint64_t turn_ = 0, bytes_ = 0;
  Reads reads_;
  std::map<uint64_t, Key> by_turn_;
};

}  // namespace sluice::optimizer
