// A complete training system, as iCache compares them (section V-A): which samples an epoch
// requests, which sample is delivered for each, and which are retained. The same code runs live and
// in the simulator. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/importance/h_list.h"
#include "policy/importance/icache.h"
#include "policy/importance/labels.h"
#include "policy/importance/selector.h"

namespace sluice::policy {

struct SystemSettings {
  uint64_t capacity = 0;  // bytes
  uint32_t samples = 0;   // of the dataset
  // By sample; it outlives the system. Needed by systems that read chunks.
  std::span<const uint32_t> bytes = {};
  SelectionSettings selection;
  double h_share = kHShare;
  // Largest share of an epoch's requests that is substituted (in systems that substitute).
  double most_substituted = kMostSubstituted;
  uint64_t package_bytes = kPackageBytes;
  // See ICacheSettings: false costs no read, and is how Sluice runs.
  bool reads_packages = true;
  // See ICacheSettings: not as published, and how Sluice runs.
  bool fills = false;
  // Samples that a job's epoch selects are retained until they are requested, and then if the next
  // epoch will select them (Coming), instead of by their importance in this one: not as published,
  // and how Sluice runs. Not where jobs share the memory: they are in different epochs.
  bool looks_ahead = false;
  Labels labels;
  uint64_t seed = 1;
};

// I/O beside that of the requests.
struct Background {
  uint64_t packages = 0;      // read, each in one request
  uint64_t bytes = 0;         // of these packages
  uint64_t useful_bytes = 0;  // of samples that could be delivered
  uint64_t written_bytes = 0;
};

class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  // Which samples the job's epoch `epoch` (from 0) requests, by sample; `values` are its importance
  // values, one for each sample of the dataset: see ImportanceValues. The caller shuffles.
  virtual std::vector<bool> begin_epoch(uint32_t job, uint32_t epoch,
                                        std::span<const float> values) = 0;
  virtual void end_job(uint32_t job) = 0;
  // The job requests a sample of `bytes` bytes. REQUIRES: the sample was chosen for the job's
  // present epoch.
  virtual Delivery request(uint32_t job, SampleId sample, uint32_t bytes) = 0;
  // A sample of the job was trained, and has this value now.
  virtual void observe(uint32_t /*job*/, SampleId /*sample*/, float /*value*/) {}
  // Since the last call.
  virtual Background background() { return {}; }
};

}  // namespace sluice::policy
