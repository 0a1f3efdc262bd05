#include "optimizer/services/stage/disk_choice.h"

#include <algorithm>
#include <utility>

#include "optimizer/io/log.h"

namespace sluice::optimizer {

DiskChoice::DiskChoice(std::shared_ptr<Mailbox> mailbox, Measure measure)
    : mailbox_(std::move(mailbox)), measure_(std::move(measure)), executor_(1, 1) {}

void DiskChoice::use(CopyPacker* packer, CopyLog* log, const std::string& folder, uint64_t bytes) {
  packer->use(folder, bytes);
  if (bytes < kLeastBytes || (!folder_.empty() && folder_ != folder)) return;
  wanted_ = bytes;
  if (std::exchange(folder_, folder) == folder) {
    begin(packer, log);
    return;
  }
  executor_.run(0, [=, this, measure = measure_, mailbox = mailbox_] {
    mailbox->post([=, this, disk = measure(folder)] {
      measured(disk);
      begin(packer, log);
    });
  });
}

void DiskChoice::measured(const std::optional<MeasuredDisk>& disk) {
  if (!disk) return;
  view_ = {disk->rates, policy::log_pays(disk->rates)};
  room_ = disk->room;
  say(Level::kInfo, "{} reads {:.0f} MB/s scattered and {:.0f} MB/s in large ranges: {}", folder_,
      disk->rates.scattered / 1e6, disk->rates.large / 1e6,
      view_->log ? "packs, and a log in the order of the next epoch" : "packs");
}

void DiskChoice::begin(CopyPacker* packer, CopyLog* log) const {
  if (!view_ || !view_->log || wanted_ == 0) return;
  packer->limit(wanted_ / kPart);
  log->use(folder_, std::min(wanted_, room_) / kPart);
}

}  // namespace sluice::optimizer
