// lcache's log beside the packs, for jobs that name neither (SLUICE_POLICY=auto with
// SLUICE_CACHE_DIR): where it pays on that disk (policy/chunks/log_choice.h), both share the bytes.
// The log serves one job; packs serve all, and later runs. Core thread only; the disk is measured
// on a thread of its own, for the first session that comes.
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
  // most `bytes`, together. The first call decides. Where packs are in another folder, or
  // are not open once the disk has been measured, there is no log. Both outlive this.
  void use(CopyPacker* packer, CopyLog* log, const std::string& folder, uint64_t bytes);
  // No session is left.
  void release();

  struct View {
    policy::DiskRates rates;  // zeros: it could not be measured
    bool log = false;         // it pays
  };
  std::optional<View> view() const { return view_; }  // nullopt: not measured, or not yet

  // What packs may have beside a log, and it. Packs keep the `packed` bytes that they have; of
  // `room`, which is free, each gets half at most.
  struct Shares {
    uint64_t packs = 0, log = 0;
    bool operator==(const Shares&) const = default;
  };
  static Shares shares(uint64_t bytes, uint64_t packed, uint64_t room);

  static constexpr uint64_t kLeastBytes = 1 << 30;  // with less nothing is measured
  static constexpr uint64_t kLeastLog = 256 << 20;  // with less there is no log

 private:
  struct Wanted {
    CopyPacker* packer;
    CopyLog* log;
    std::string folder;
    uint64_t bytes;
  };
  void measured(const Wanted& wanted, const std::optional<MeasuredDisk>& disk);

  const std::shared_ptr<Mailbox> mailbox_;
  const Measure measure_;
  std::optional<View> view_;
  uint64_t turn_ = 0;  // what is measured for an earlier one came too late
  bool used_ = false;
  Executor executor_;
};

}  // namespace sluice::optimizer
