#include "optimizer/services/stage/copy_packer.h"

#include <algorithm>
#include <utility>

#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

constexpr unsigned kPackers = 2;
// Within a small limit packs are smaller: a pack that never fills is never written.
constexpr uint64_t kFewestPacks = 4;

}  // namespace

CopyPacker::CopyPacker(std::shared_ptr<Mailbox> mailbox)
    : mailbox_(std::move(mailbox)), executor_(kPackers, kPackers) {}

void CopyPacker::use(const std::string& folder, uint64_t bytes) {
  releasing_ = false;
  if (requested_) return;
  requested_ = true;
  // On the executor: opening reads the indices of all packs.
  executor_.run(0, [this, folder, bytes, mailbox = mailbox_] {
    auto packs = std::make_shared<PackStore>();
    PackStore::Settings settings;
    settings.base = folder;
    settings.most_bytes = bytes;
    settings.pack_bytes =
        std::clamp(bytes / kFewestPacks, protocol::kPackLeastBytes, settings.pack_bytes);
    settings.say = [](const std::string& line) { say(Level::kWarn, "{}", line); };
    std::string reason;
    const bool good = packs->open(settings, &reason);
    mailbox->post([this, good, packs, reason] {
      requested_ = good;  // else the next job may request them again
      if (good) {
        packs_ = packs;
      } else {
        say(Level::kWarn, "no packs: {}", reason);
      }
    });
  });
}

// Also releases the folder to other optimizers: this one may never be used again.
void CopyPacker::release() {
  if (packs_ == nullptr) return;
  releasing_ = true;
  executor_.run(0, [this, packs = packs_, mailbox = mailbox_]() mutable {
    packs->flush();
    packs.reset();
    mailbox->post([this] {
      if (!releasing_ || packs_ == nullptr) return;
      before_ = packs_->view();
      packs_.reset();
      requested_ = false;
    });
  });
}

std::optional<PackStore::View> CopyPacker::view() const {
  return packs_ != nullptr ? packs_->view() : before_;
}

// The job does not wait for packing. Queued copies stay in memory, so their bytes are limited: a
// slow disk gets fewer.
void CopyPacker::pack(const std::string& path, std::shared_ptr<CopyToPack> copy, uint64_t most) {
  const uint64_t bytes = copy->bytes;
  if (packs_ == nullptr || (waiting_ != 0 && waiting_ + bytes > most)) return;
  waiting_ += bytes;
  executor_.run(
      0, [this, path, copy = std::move(copy), bytes, packs = packs_, mailbox = mailbox_]() mutable {
        pack_copy(path, *copy, packs.get());
        copy.reset();
        mailbox->post([this, bytes] { waiting_ -= bytes; });
      });
}

}  // namespace sluice::optimizer
