// The samples that readers have begun and not ended, and what they read for them. Pure; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "policy/samples/extent.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class BegunSamples {
 public:
  struct Begun {
    SessionId session{};
    DatasetId dataset{};
    uint64_t index = 0;
    bool random = false;        // in a known order that is not the file's
    bool ahead = false;         // not taken from its order yet: another one is being read
    std::vector<Extent> parts;  // observed; neighbours are not joined yet
  };
  static constexpr size_t kMaxReaders = 4096;
  static constexpr size_t kMaxOpen = 4096;         // samples that one reader has begun at a time
  static constexpr size_t kMaxOpenAll = 1 << 16;   // likewise, of all readers of one session
  static constexpr size_t kMaxPartsAll = 1 << 20;  // and their observed parts

  // Called for each sample whose end is not awaited any more.
  std::function<void(const Begun&)> on_lost;

  void begin(uint64_t reader, Begun begun);
  bool reads(uint64_t reader) const { return begun_.count(reader) != 0; }  // any sample
  void part(uint64_t reader, DatasetId dataset, uint64_t index, const Extent& extent);
  // Removes the sample into *begun. False: it had not begun.
  bool end(uint64_t reader, DatasetId dataset, uint64_t index, Begun* begun);
  void remove_session(SessionId session);
  void remove_process(uint32_t pid);

  // The sample that the reader began last is read in a known order that is not the file's.
  bool reads_at_random(uint64_t reader) const;
  void for_each(const std::function<void(const Begun&)>& visit) const;

 private:
  struct Sums {  // of one session
    size_t samples = 0, parts = 0;
  };

  Begun* find(uint64_t reader, DatasetId dataset, uint64_t index);
  void remove(const std::function<bool(uint64_t reader, const Begun&)>& which);

  std::unordered_map<uint64_t, std::vector<Begun>> begun_;  // by reader
  std::map<SessionId, Sums> sums_;                          // by session
};

}  // namespace sluice::policy
