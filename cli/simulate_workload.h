// The accesses of a simulation: rounds of accesses by all jobs together, synthetic or recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::cli {

// The message for the user is one line; `status` is the exit status.
class SimulateFailure : public std::runtime_error {
 public:
  SimulateFailure(int exit_status, const std::string& line)
      : std::runtime_error(line), status(exit_status) {}
  const int status;
};

struct Access {
  uint64_t bytes = 0;
  uint32_t sample = 0;  // below Workload::samples()
  uint16_t job = 0;     // below Workload::jobs()
  bool begins_epoch = false;
};

class Workload {
 public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;
  virtual uint32_t samples() const = 0;
  virtual uint64_t dataset_bytes() const = 0;
  virtual unsigned jobs() const = 0;
  virtual unsigned rounds() const = 0;
  // The accesses of one epoch of the first job, and of the other jobs meanwhile. The span is valid
  // until a round other than this one or the next is requested.
  virtual std::span<const Access> round(unsigned index) = 0;
  virtual std::string description() const = 0;  // one line for a user
};

// A dataset that every job reads completely in each epoch, reshuffled uniformly; jobs take turns.
struct Synthetic {
  enum class Sizes { kFixed, kLogNormal };
  uint32_t samples = 1281167;  // at least 1
  unsigned epochs = 10, jobs = 1;
  uint64_t seed = 1;
  Sizes sizes = Sizes::kLogNormal;
  double median = 0, sigma = 0;  // kLogNormal: in bytes; of the logarithm
  uint64_t bytes = 0;            // kFixed
};
std::unique_ptr<Workload> make_synthetic(const Synthetic& synthetic);

// Reads and checks the file as protocol/trace.h describes it. Sample numbers are made dense. Throws
// SimulateFailure.
std::unique_ptr<Workload> read_trace(const std::string& path);

}  // namespace sluice::cli
