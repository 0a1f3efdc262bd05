// What samples matter to each job, and which of them its epochs fetch. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "optimizer/importance/selector.h"
#include "optimizer/importance/values.h"

namespace sluice::optimizer {

// Jobs are numbered by the caller: ranks of one job, which train one model, are one.
class ImportanceBook {
 public:
  explicit ImportanceBook(const SelectionSettings& selection = {}) : selection_(selection) {}

  // A sample of the job's dataset, which has so many, mattered so much. False: refused, see
  // ImportanceValues::observe().
  bool report(uint32_t job, uint32_t dataset, uint64_t samples, uint64_t sample, double value);

  // Which samples epoch `epoch` of the job fetches, by sample, from what is known now. Empty: there
  // are too many jobs and datasets.
  std::vector<bool> select(uint32_t job, uint32_t dataset, uint64_t samples, uint32_t epoch);

  void forget_job(uint32_t job);
  void forget_dataset(uint32_t dataset);

  struct View {
    uint32_t job = 0, dataset = 0, epoch = 0;
    uint64_t reported = 0, refused = 0;  // values
    uint64_t known = 0;                  // samples of which a value is
    uint64_t selected = 0;               // for `epoch`, the last that was asked for
  };
  std::vector<View> views() const;

  static constexpr uint64_t kMostSamples = 1 << 27;  // of a dataset: half a gigabyte of values
  static constexpr uint64_t kMostAll = 1 << 28;      // of all jobs and datasets together

 private:
  struct Entry {
    Entry(uint64_t samples, const SelectionSettings& selection)
        : values(static_cast<uint32_t>(samples)),
          selector(find_selector("loss")->make(selection)) {}
    ImportanceValues values;
    std::unique_ptr<Selector> selector;
    uint64_t reported = 0, refused = 0, selected = 0;
    uint32_t epoch = 0;  // that was selected for last
  };
  // nullptr: too many.
  Entry* entry(uint32_t job, uint32_t dataset, uint64_t samples);

  const SelectionSettings selection_;
  std::map<std::pair<uint32_t, uint32_t>, Entry> entries_;  // by job and dataset
};

}  // namespace sluice::optimizer
