// Copies that will come together, since a chunk is read whole for them: which come with which,
// until the first of them is fetched. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "policy/copies/stage_plan.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class ComingChunks {
 public:
  struct Job {
    SessionId session{};
    DatasetId dataset{};
    uint64_t rank = 0;  // or whatever distinguishes those of a session
    bool operator==(const Job&) const = default;
  };
  // A chunk is read for `first`, and brings copies of `others`. Replaces what was to come with it.
  void add(const Job& job, SampleFileId first, std::span<const SampleFileId> others, bool package);
  // The job's file is fetched by itself, as was decided: nothing comes with it, nor it with others.
  void drop(const Job& job, SampleFileId file);
  // The job begins an epoch: what it decided before and did not come to is of no use.
  void begin_epoch(const Job& job);
  void drop_session(SessionId session);
  void drop_dataset(DatasetId dataset);
  // All that comes with this one, which is fetched now: the first of a chunk's, or another of them,
  // since workers in parallel may come to that before. Each is named once.
  StagePlan::Companions take(SampleFileId file);

  bool empty() const { return chunks_.empty(); }
  // Whether a chunk is to be read for the file. Those that come with it may have copies.
  bool brings(SampleFileId first) const { return chunks_.contains(first); }

 private:
  struct Chunk {
    Job job;
    StagePlan::Companions others;
  };
  void drop(SampleFileId first);
  void unlink(SampleFileId first, const Chunk& chunk);
  template <typename Test>
  void drop_if(Test test);

  std::map<SampleFileId, Chunk> chunks_;       // by the first file
  std::map<SampleFileId, SampleFileId> with_;  // the first, by each of its others
};

}  // namespace sluice::policy
