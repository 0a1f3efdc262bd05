#include "optimizer/services/stage/copy_packer.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

constexpr unsigned kPackers = 2;
// Within a small limit packs are smaller: a pack that never fills is never written.
constexpr uint64_t kFewestPacks = 4;

}  // namespace

CopyPacker::CopyPacker(std::shared_ptr<Mailbox> mailbox)
    : mailbox_(std::move(mailbox)),
      executor_(std::make_shared<Executor>(kPackers, kPackers)),
      waiting_(std::make_shared<uint64_t>(0)) {}

void CopyPacker::use(const std::string& folder, uint64_t bytes) {
  if (requested_) return;
  requested_ = {folder, bytes};
  if (!held_.contains(folder)) open(*requested_);
}

// What a store holds may take its file system long to close, or for good.
void CopyPacker::open(const Request& request) {
  held_.insert(request.folder);
  const auto close = [this, executor = std::weak_ptr(executor_), mailbox = mailbox_,
                      core = std::this_thread::get_id(),
                      folder = request.folder](PackStore* packs) {
    auto work = [this, mailbox, folder, packs] {
      delete packs;
      mailbox->post([this, folder] { closed(folder); });
    };
    if (std::this_thread::get_id() != core) {
      work();
    } else if (const auto living = executor.lock()) {
      living->run(mount_key(folder), std::move(work));
    }
  };
  // On the executor: opening reads the indices of all packs.
  executor_->run(
      mount_key(request.folder), [this, request, close, turn = turn_, mailbox = mailbox_] {
        std::shared_ptr<PackStore> packs(new PackStore, close);
        PackStore::Settings settings;
        settings.base = request.folder;
        settings.most_bytes = request.bytes;
        settings.pack_bytes = std::clamp(request.bytes / kFewestPacks, protocol::kPackLeastBytes,
                                         settings.pack_bytes);
        settings.say = [](const std::string& line) { say(Level::kWarn, "{}", line); };
        std::string reason;
        if (packs->open(settings, &reason)) {
          mailbox->post([this, turn, packs = std::move(packs)]() mutable {
            if (turn == turn_) packs_ = std::move(packs);  // else it was released meanwhile
          });
        } else {
          mailbox->post([this, turn, reason] { failed(turn, reason); });  // before closed()
        }
      });
}

void CopyPacker::failed(uint64_t turn, const std::string& reason) {
  if (turn != turn_) return;
  say(Level::kWarn, "no packs: {}", reason);
  requested_.reset();  // the next job may request them again
}

void CopyPacker::closed(const std::string& folder) {
  held_.erase(folder);
  if (requested_ && requested_->folder == folder && packs_ == nullptr) open(*requested_);
}

void CopyPacker::release() {
  if (!requested_) return;
  ++turn_;
  waiting_ = std::make_shared<uint64_t>(0);
  const std::string folder = std::exchange(requested_, std::nullopt)->folder;
  std::shared_ptr<PackStore> packs = std::exchange(packs_, nullptr);
  if (packs == nullptr) return;
  before_ = packs->view();
  executor_->run(mount_key(folder),
                 [this, packs = std::move(packs), turn = turn_, mailbox = mailbox_]() mutable {
                   packs->flush();
                   mailbox->post([this, turn, view = packs->view()] {
                     if (turn == turn_) before_ = view;
                   });
                   packs.reset();
                 });
}

std::optional<PackStore::View> CopyPacker::view() const {
  return packs_ != nullptr ? packs_->view() : before_;
}

// The job does not wait for packing. Queued copies stay in memory, so their bytes are limited: a
// slow disk gets fewer.
void CopyPacker::pack(const std::string& path, std::shared_ptr<CopyToPack> copy, uint64_t most) {
  const uint64_t bytes = copy->bytes;
  if (packs_ == nullptr || (*waiting_ != 0 && *waiting_ + bytes > most)) return;
  *waiting_ += bytes;
  executor_->run(mount_key(requested_->folder),
                 [path, copy = std::move(copy), bytes, packs = packs_, mailbox = mailbox_,
                  waiting = waiting_]() mutable {
                   pack_copy(path, *copy, packs.get());
                   copy.reset();
                   mailbox->post([waiting = std::move(waiting), bytes] { *waiting -= bytes; });
                 });
}

}  // namespace sluice::optimizer
