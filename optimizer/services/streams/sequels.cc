#include "optimizer/services/streams/sequels.h"

#include <memory>
#include <utility>

#include "optimizer/io/log.h"
#include "policy/streams/shard_names.h"

namespace sluice::optimizer {

using policy::FileId;
using policy::number;
using policy::SequelPlanner;
using policy::SessionId;

void Sequels::look() {
  for (const SequelPlanner::Begun& begun : plans_->scheduler.streams().sequels().take_begun()) {
    const FileEntry* file = files_->find(begun.file);
    const auto session = sessions_->all().find(begun.session);
    if (file == nullptr || file->state != FileEntry::State::kReady) continue;
    if (session == sessions_->all().end()) continue;
    if (session->second->files.size() >= Session::kMaxFiles) continue;
    const std::string before = std::exchange(last_[begun.session], file->path);
    const auto names = policy::shard_names(file->path);
    if (!names || names->after.empty()) continue;
    const bool first = names->of_all && names->before.empty() && before.empty();
    if (!first && (names->before.empty() || names->before != before)) continue;
    base_->executor.run(
        file->device, [this, mailbox = base_->loop.mailbox(), begun, known = file->path,
                       device = file->device, inode = file->inode, after = names->after] {
          auto beside = std::make_shared<Beside>(open_beside(known, device, inode, after));
          mailbox->post([this, begun, after, beside] {
            if (beside->fd) found(begun.file, begun.session, after, std::move(*beside));
          });
        });
  }
}

void Sequels::found(FileId before, SessionId id, const std::string& path, Beside beside) {
  const FileEntry* file = files_->find(before);
  const auto session = sessions_->all().find(id);
  if (file == nullptr || session == sessions_->all().end()) {
    // Closing a descriptor can block like any call on the mount.
    base_->executor.run(beside.about.st_dev,
                        [fd = std::make_shared<UniqueFd>(std::move(beside.fd))] { fd->reset(); });
    return;
  }
  protocol::File request{};
  request.device = beside.about.st_dev;
  request.inode = beside.about.st_ino;
  request.size = static_cast<uint64_t>(beside.about.st_size);
  const FileEntry& next = files_->use(id, request, path, std::move(beside.fd), now_ns());
  session->second->files.insert(next.id);
  plans_->scheduler.streams().sequels().set(before, next.id);
  say(Level::kDebug, "file {}: {} is expected to follow", number(before), path);
}

}  // namespace sluice::optimizer
