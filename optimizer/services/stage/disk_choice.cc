#include "optimizer/services/stage/disk_choice.h"

#include <algorithm>
#include <utility>

#include "optimizer/io/log.h"

namespace sluice::optimizer {

DiskChoice::DiskChoice(std::shared_ptr<Mailbox> mailbox, Measure measure)
    : mailbox_(std::move(mailbox)), measure_(std::move(measure)), executor_(1, 1) {}

void DiskChoice::use(CopyPacker* packer, CopyLog* log, const std::string& folder, uint64_t bytes) {
  if (std::exchange(used_, true)) return;
  packer->use(folder, bytes);
  if (bytes < kLeastBytes) return;
  const Wanted wanted{packer, log, folder, bytes};
  executor_.run(0, [this, wanted, turn = turn_, measure = measure_, mailbox = mailbox_] {
    mailbox->post([this, wanted, turn, disk = measure(wanted.folder)] {
      if (turn == turn_) measured(wanted, disk);
    });
  });
}

void DiskChoice::release() {
  ++turn_;
  used_ = false;
}

DiskChoice::Shares DiskChoice::shares(uint64_t bytes, uint64_t packed, uint64_t room) {
  const uint64_t packs = std::max(packed, std::min(bytes / 2, packed + room / 2));
  return {packs, std::min(bytes - std::min(bytes, packs), room / 2)};
}

void DiskChoice::measured(const Wanted& wanted, const std::optional<MeasuredDisk>& disk) {
  view_ = View{};
  if (!disk) return;
  view_ = {disk->rates, policy::log_pays(disk->rates)};
  say(Level::kInfo, "{} reads {:.0f} MB/s scattered and {:.0f} MB/s in large ranges: {}",
      wanted.folder, disk->rates.scattered / 1e6, disk->rates.large / 1e6,
      view_->log ? "a log in the order of the next epoch pays" : "packs alone");
  const std::shared_ptr<PackStore>& packs = wanted.packer->packs();
  if (!view_->log || packs == nullptr || wanted.packer->folder() != wanted.folder) return;
  const Shares parts = shares(wanted.bytes, packs->view().bytes, disk->room);
  if (parts.log < kLeastLog) return;
  wanted.packer->limit(parts.packs);
  wanted.log->use(wanted.folder, parts.log);
}

}  // namespace sluice::optimizer
