// Datasets whose samples lie in chunks: whole files in those that were made ahead
// (optimizer/chunks), and records, which are their own chunks (policy/chunks/record_chunks.h).
// Where each lies, and which come with which when a chunk is read. Core thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "optimizer/services/service.h"
#include "policy/chunks/chunk_map.h"
#include "policy/copies/coming_chunks.h"
#include "policy/copies/stage_plan.h"
#include "policy/samples/sample_set.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class ChunkedSamples : Service {
 public:
  explicit ChunkedSamples(const Service& service);
  ~ChunkedSamples();
  ChunkedSamples(const ChunkedSamples&) = delete;
  ChunkedSamples& operator=(const ChunkedSamples&) = delete;

  struct Map {
    std::shared_ptr<const policy::ChunkMap> chunks;
    std::shared_ptr<const std::vector<uint32_t>> bytes;  // of memory, by sample
    uint32_t missing = 0;  // samples that are in no chunk, as far as is known now
    bool records = false;
  };
  enum class Kind : uint8_t { kUnknown, kFiles, kRecords };
  Kind kind_of(policy::DatasetId dataset) const;  // of its samples, by the first one known
  // Null chunks: some samples of the dataset are missing, or no chunks are in use. What was found
  // is the same for all ranks of a job, and found once.
  Map map_of(policy::DatasetId dataset);
  void warn_of_missing(policy::DatasetId dataset, const Map& map, const Session& session) const;
  // Copies of the dataset come from chunks from now on. Compares its originals with what was
  // packed, folder by folder, and calls `done` then; records have no others. REQUIRES: map_of()
  // has found it.
  void begin(policy::DatasetId dataset, const Session& session, std::function<void()> done);

  // Of a sample that is delivered next: when its copy is fetched, or that of another of `package`,
  // of which it is the first, the chunk is read, and brings copies of all of them, retained by
  // `priority_of`. A package of one, or none: nothing comes with it; `alone`: nor it with others.
  using Job = policy::ComingChunks::Job;
  void deliver(const Job& job, policy::SampleId sample, std::span<const policy::SampleId> package,
               bool alone, const std::function<float(policy::SampleId)>& priority_of);
  // The job begins an epoch: what it decided before does not come.
  void begin_epoch(const Job& job);
  void remove_session(policy::SessionId session) { coming_.drop_session(session); }
  void remove_dataset(policy::DatasetId dataset);
  // The file that is all of the sample; FileTable::kNone: none is.
  policy::SampleFileId file_of(policy::DatasetId dataset, policy::SampleId sample) const;

 private:
  Map find_files(policy::DatasetId dataset, uint32_t samples, const ChunkStore& store);
  static Map find_records(const policy::SampleSet& set);

  std::map<policy::DatasetId, Map> found_;  // with chunks
  policy::ComingChunks coming_;
};

}  // namespace sluice::optimizer
