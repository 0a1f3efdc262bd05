// Whole training systems, as iCache compares them (section V-A): which samples an epoch asks for,
// who is served for each, and what stays in memory. Live and simulated the same code. Pure; one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "policy/importance/h_list.h"
#include "policy/importance/icache.h"
#include "policy/importance/labels.h"
#include "policy/importance/selector.h"

namespace sluice::optimizer {

struct SystemSettings {
  uint64_t capacity = 0;  // bytes
  uint32_t samples = 0;   // of the dataset
  SelectionSettings selection;
  double h_share = kHShare;
  // Of an epoch's requests: at most so many are answered by others (systems that substitute).
  double most_substituted = kMostSubstituted;
  uint64_t package_bytes = kPackageBytes;
  // ICacheSettings has it: false costs no read, and is how Sluice runs.
  bool reads_packages = true;
  Labels labels;
  uint64_t seed = 1;
};

// What was read and written beside the requests.
struct Background {
  uint64_t packages = 0;      // read, each in one request
  uint64_t bytes = 0;         // of them
  uint64_t useful_bytes = 0;  // of samples that could stand in for somebody
  uint64_t written_bytes = 0;
};

class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  // Which samples the job's epoch `epoch` (from 0) asks for, by sample; `values` are its importance
  // values, by sample, as long as the dataset: see ImportanceValues. Shuffling is the caller's.
  virtual std::vector<bool> begin_epoch(uint32_t job, uint32_t epoch,
                                        std::span<const float> values) = 0;
  virtual void end_job(uint32_t job) = 0;
  // The job asks for a sample of so many bytes. REQUIRES: begin_epoch() chose it, or somebody of
  // its epoch.
  virtual Answer request(uint32_t job, SampleId sample, uint32_t bytes) = 0;
  // Since the last call.
  virtual Background background() { return {}; }
};

struct SystemInfo {
  const char* name;     // as users write it
  const char* meaning;  // for a user, a few words
  bool selects;         // epochs ask for a part of the samples (IIS)
  std::unique_ptr<System> (*make)(const SystemSettings& settings);
};

// In the order in which they are shown.
std::span<const SystemInfo> systems();

// nullptr if there is none of that name.
const SystemInfo* find_system(std::string_view name);

}  // namespace sluice::optimizer
