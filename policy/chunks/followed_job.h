// A job whose samples are whole files, as LCache's two logs follow it: its epochs, which sample a
// file is, where a sample is in the running epoch, and how large it is. Pure; one thread. About 44
// bytes a sample of the dataset, log_plan.h's included, and 4 a file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "policy/chunks/log_plan.h"
#include "policy/samples/file_table.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class FollowedJob {
 public:
  // `book` and `files` outlive this. `budget`: bytes of both logs; `chunk`: of a chunk, about.
  // nullptr: there is no such job.
  static std::unique_ptr<FollowedJob> choose(const SampleBook* book, const FileTable* files,
                                             uint64_t budget, uint64_t chunk);

  // To be called before anything else, since the job and what is known of its dataset may go away
  // at any time.
  struct Step {
    bool gone = false;      // nothing else may be called
    bool turned = false;    // an epoch began whose order was known before, and the log that is not
                            // the plan's current one is to be cleared
    bool expected = false;  // the next epoch's order has become known, and some samples' sizes
  };
  Step follow();

  DatasetId dataset() const { return key_.second; }
  LogPlan& plan() { return *plan_; }
  const LogPlan& plan() const { return *plan_; }
  uint32_t samples() const { return static_cast<uint32_t>(bytes_.size()); }
  std::optional<SampleId> sample_of(SampleFileId file) const;
  SampleFileId file_of(SampleId sample) const;  // zero: not known
  // Whether the running epoch reads the sample, and whether it has.
  bool is_ordered(SampleId sample) const { return position_[sample] != kNone; }
  bool is_read(SampleId sample) const { return order_->is_taken(position_[sample]); }
  // The epoch reads the members of that chunk of the current log about together, as was expected
  // when it was written. False of others than chunks().
  bool is_in_order(uint32_t chunk) const;
  // The sample has that many bytes. False: it had others before.
  bool has_bytes(SampleId sample, uint64_t bytes);

  // Samples, or a share of the order, whose sizes are known before the next epoch's chunks are laid
  // out: the others are assumed to be about as large.
  static constexpr uint64_t kKnown = 256, kKnownShare = 16;
  static constexpr uint64_t kMostBytes = 64 << 20;  // of a sample; larger ones are in no log
  static bool may_have(uint64_t bytes) { return bytes != 0 && bytes <= kMostBytes; }
  static constexpr uint64_t kMostSamples = 1 << 24;
  static constexpr size_t kLeastOrder = 64;  // samples: a smaller dataset is in memory anyway

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  FollowedJob(const SampleBook* book, const FileTable* files, JobOrders::Key key, uint64_t samples);
  void map_files();
  void place();
  bool expect();
  bool may_be_logged(SampleId sample);

  const SampleBook& book_;
  const FileTable& files_;
  const JobOrders::Key key_;
  std::vector<uint32_t> bytes_;     // by sample, constant once it is not 0: not known
  std::vector<uint32_t> position_;  // by sample: in the running epoch's order, or kNone
  std::vector<uint32_t> sample_;    // by number of the file, or kNone
  std::unique_ptr<LogPlan> plan_;
  const SampleOrder* order_ = nullptr;  // of the last follow()
  uint64_t mapped_ = 0;                 // known samples of the dataset when sample_ was made
  uint64_t placed_ = 0;                 // of the running epoch's order, in position_
  uint64_t look_at_ = 0;                // known sizes: expect() has too few before
  uint32_t epoch_ = 0;
  bool begun_ = false, expected_ = false;
};

}  // namespace sluice::policy
