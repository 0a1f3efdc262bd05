// lcache's log beside the packs, for jobs that name neither (SLUICE_POLICY=auto with
// SLUICE_CACHE_DIR): where it pays on that disk (policy/chunks/log_choice.h), each of the two may
// take half of the bytes. The log serves one job; packs serve all, and later runs. Core thread
// only; the disk is measured on a thread of its own, once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "optimizer/chunks/disk_rates.h"
#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "optimizer/services/stage/copy_log.h"
#include "optimizer/services/stage/copy_packer.h"

namespace sluice::optimizer {

class DiskChoice {
 public:
  using Measure = std::function<std::optional<MeasuredDisk>(const std::string& folder)>;
  explicit DiskChoice(std::shared_ptr<Mailbox> mailbox, Measure measure = measure_disk);

  // From now on there are packs in `folder`, and a log as soon as it is known that it pays: of at
  // most `bytes`, together. Of several folders the first one's disk counts, where packs are, too.
  // Both outlive this.
  void use(CopyPacker* packer, CopyLog* log, const std::string& folder, uint64_t bytes);
  // No session is left. What was measured is remembered.
  void release() { wanted_ = 0; }

  struct View {
    policy::DiskRates rates;
    bool log = false;  // it pays
  };
  std::optional<View> view() const { return view_; }  // nullopt: the disk was not measured

  static constexpr uint64_t kLeastBytes = 1 << 30;  // with less there is no log
  static constexpr uint64_t kPart = 2;  // of the bytes, each; the log also of the disk's free room

 private:
  void measured(const std::optional<MeasuredDisk>& disk);
  void begin(CopyPacker* packer, CopyLog* log) const;

  const std::shared_ptr<Mailbox> mailbox_;
  const Measure measure_;
  std::string folder_;   // that was measured, or is being
  uint64_t wanted_ = 0;  // bytes; 0: no session is here
  uint64_t room_ = 0;    // bytes that were free
  std::optional<View> view_;
  Executor executor_;
};

}  // namespace sluice::optimizer
