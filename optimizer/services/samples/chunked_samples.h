// Datasets whose samples are whole files in chunks that were made ahead (optimizer/chunks): where
// each lies, and which copies come with which when a chunk is read. Core thread only.
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
#include "policy/copies/stage_plan.h"
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
    uint32_t missing = 0;  // samples that are no files in chunks, as far as is known now
  };
  // Null chunks: some samples of the dataset are missing, or no chunks are in use. What was found
  // is the same for all ranks of a job, and found once.
  Map map_of(policy::DatasetId dataset);
  void warn_of_missing(policy::DatasetId dataset, const Map& map, const Session& session) const;
  // Copies of the dataset come from chunks from now on. Compares its originals with what was
  // packed, folder by folder, and calls `done` then. REQUIRES: map_of() has found it.
  void begin(policy::DatasetId dataset, const Session& session, std::function<void()> done);

  // Of a sample that is delivered next: when its copy is fetched its chunk is read, and brings
  // copies of the others of `package`, of which it is the first, retained by `priority_of`. A
  // package of one, or none: it is fetched alone.
  void deliver(policy::DatasetId dataset, policy::SampleId sample,
               std::span<const policy::SampleId> package,
               const std::function<float(policy::SampleId)>& priority_of);
  void remove_dataset(policy::DatasetId dataset);
  // The file that is all of the sample; FileTable::kNone: none is.
  policy::SampleFileId file_of(policy::DatasetId dataset, policy::SampleId sample) const;

 private:
  Map find(policy::DatasetId dataset, uint32_t samples, const ChunkStore& store);

  std::map<policy::DatasetId, Map> found_;  // with chunks
  struct Coming {
    policy::DatasetId dataset{};
    policy::StagePlan::Companions companions;
  };
  std::map<policy::SampleFileId, Coming> coming_;  // by the file a chunk will be read for
};

}  // namespace sluice::optimizer
