#include "optimizer/services/streams/files.h"

#include <new>

#include "optimizer/io/log.h"
#include "optimizer/io/residency.h"
#include "optimizer/io/weights.h"

namespace sluice::optimizer {

using policy::FileId;
using policy::Range;
using policy::SessionId;
namespace {

constexpr uint32_t kFileIds = 1U << 24;  // the library has 24 bits for an id

constexpr unsigned kBadFills = 8;  // in a row, before the mount is switched off

}  // namespace

Files::~Files() {
  for (auto& [id, file] : files_) {
    if (file.in_flight > 0) file.fd.release();
  }
}

uint64_t Files::cached(FileId id, Range range) {
  const FileEntry* file = find(id);
  uint64_t bytes = 0;
  if (file == nullptr || file->residency == nullptr) return 0;
  return file->residency->cached(range, &bytes) ? bytes : 0;
}

bool Files::known(FileId id) const {
  const auto at = files_.find(id);
  return at == files_.end() || at->second.residency == nullptr || at->second.residency->known();
}

bool Files::exact(FileId id) const {
  const auto at = files_.find(id);
  return at != files_.end() && at->second.residency != nullptr && at->second.residency->exact();
}

bool Files::awaited(FileId id) const {
  const auto at = files_.find(id);
  return at != files_.end() && at->second.state == FileEntry::State::kOpening;
}

FileEntry& Files::use(SessionId session, const protocol::File& request, const std::string& path,
                      UniqueFd passed, uint64_t now_ns) {
  const auto key = std::pair(request.device, request.inode);
  if (const auto known = by_inode_.find(key); known != by_inode_.end()) {
    FileEntry& file = files_.at(known->second);
    share(file, session);
    // Closing a descriptor can block like any call on the mount.
    base_->executor.run(request.device,
                        [fd = std::make_shared<UniqueFd>(std::move(passed))] { fd->reset(); });
    return file;
  }
  // Ids are part of events (protocol/ring.h): they wrap around, but no two files share one.
  while (next_id_ == 0 || files_.count(FileId{next_id_}) != 0) next_id_ = (next_id_ + 1) % kFileIds;
  const FileId next{next_id_};
  next_id_ = (next_id_ + 1) % kFileIds;
  FileEntry& file = files_[next];
  file.id = next;
  file.device = request.device;
  file.inode = request.inode;
  file.size = request.size;
  file.path = path;
  file.since_ns = now_ns;
  by_inode_[key] = file.id;
  plans_->scheduler.add_file(file.id, file.size, file.device);
  share(file, session);
  MountEntry& mount = mounts_[request.device];
  if (mount.off) {
    file.state = FileEntry::State::kOff;
    file.why = "its mount is off";
    if (on_refused) on_refused(file);
  }
  // Also on a mount that is off: the file is checked and later closed in the same way.
  base_->executor.run(request.device, [this, mailbox = base_->loop.mailbox(), id = file.id, request,
                                       no_cachestat = base_->settings.no_cachestat,
                                       fd = std::make_shared<UniqueFd>(std::move(passed))] {
    auto result =
        std::make_shared<Reopened>(reopen(fd->get(), request.device, request.inode, no_cachestat));
    fd->reset();
    mailbox->post([this, id, result] { opened(id, std::move(*result)); });
  });
  return file;
}

void Files::opened(FileId id, Reopened result) {
  const auto at = files_.find(id);
  if (at == files_.end()) return;
  FileEntry& file = at->second;
  file.fd = std::move(result.fd);
  file.residency = std::move(result.residency);
  if (file.state == FileEntry::State::kClosing) {
    close_if_idle(file);
    return;
  }
  if (!file.fd) {
    turn_off(file, result.problem);
    return;
  }
  MountEntry& mount = mounts_[file.device];
  if (!mount.known) {
    mount.known = true;
    mount.facts = result.mount;
    plans_->scheduler.queue().set(file.device, mount.facts.block, mount.facts.max_depth);
    say(Level::kInfo, "mount of {}: {}, read-ahead {} KiB, blocks of {} KiB", file.path,
        mount.facts.type, mount.facts.read_ahead >> 10, mount.facts.block >> 10);
  }
  if (result.cache_dropped) turn_mount_off(file.device, "an open empties its page cache");
  if (mount.off) {
    turn_off(file, "its mount is off");
    return;
  }
  file.size = result.size;
  file.modified_ns = result.modified_ns;
  plans_->scheduler.resize_file(id, result.size);
  file.state = FileEntry::State::kReady;
  plans_->scheduler.file_usable(id, true);
  say(Level::kInfo, "file {}: {} ({} bytes)", number(id), file.path, file.size);
  if (may_be_weights(file.path)) read_header(file);
  if (on_ready) on_ready(file);
}

void Files::read_header(const FileEntry& file) {
  read_started(file.id);
  base_->executor.run(file.device, [this, mailbox = base_->loop.mailbox(), id = file.id,
                                    fd = file.fd.get(), size = file.size] {
    auto tensors = std::make_shared<policy::TensorList>();
    try {
      *tensors = read_tensors(fd, size);
    } catch (const std::bad_alloc&) {  // the file is followed by what is read of it
    }
    mailbox->post([this, id, tensors] {
      if (!tensors->empty()) plans_->scheduler.streams().on_tensors(id, std::move(*tensors));
      read_ended(id);
    });
  });
}

void Files::turn_off(FileEntry& file, const std::string& why) {
  file.state = FileEntry::State::kOff;
  file.why = why;
  plans_->scheduler.file_usable(file.id, false);
  say(Level::kWarn, "{}: not read ahead: {}", file.path, why);
  if (on_refused) on_refused(file);
}

void Files::turn_mount_off(uint64_t device, const std::string& why) {
  MountEntry& mount = mounts_[device];
  if (mount.off) return;
  mount.off = true;
  say(Level::kWarn, "mount {:x} ({}) is not read ahead from now on: {}", device, mount.facts.type,
      why);
  for (auto& [id, file] : files_) {
    if (file.device != device || file.state != FileEntry::State::kReady) continue;
    file.state = FileEntry::State::kOff;
    file.why = why;
    plans_->scheduler.file_usable(id, false);
    if (on_refused) on_refused(file);
  }
}

void Files::warn_of_hung_opens(uint64_t now_ns, uint64_t limit_ns) {
  for (auto& [id, file] : files_) {
    if (file.state != FileEntry::State::kOpening || file.since_ns == 0) continue;
    if (now_ns - file.since_ns < limit_ns) continue;
    file.since_ns = 0;
    say(Level::kWarn, "{}: its mount hangs, it cannot be opened", file.path);
    if (on_refused) on_refused(file);
  }
}

FileEntry* Files::find(FileId id) {
  const auto at = files_.find(id);
  return at == files_.end() ? nullptr : &at->second;
}

void Files::leave(SessionId session, const std::function<void(uint64_t)>& cancel) {
  for (auto at = files_.begin(); at != files_.end();) {
    FileEntry& file = (at++)->second;
    if (file.sessions.erase(session) == 0 || !file.sessions.empty()) continue;
    const bool opening = file.state == FileEntry::State::kOpening;
    for (const uint64_t token : plans_->scheduler.queue().tokens_of(file.id)) cancel(token);
    plans_->scheduler.remove_file(file.id);
    by_inode_.erase({file.device, file.inode});
    file.state = FileEntry::State::kClosing;
    ++closing_;
    if (!opening) close_if_idle(file);
  }
}

void Files::read_started(FileId id) {
  if (FileEntry* file = find(id)) ++file->in_flight;
}

void Files::read_ended(FileId id) {
  FileEntry* file = find(id);
  if (file == nullptr) return;
  --file->in_flight;
  if (file->state == FileEntry::State::kClosing) close_if_idle(*file);
}

void Files::close_if_idle(FileEntry& file) {
  if (file.in_flight > 0) return;
  base_->executor.run(file.device,
                      [this, mailbox = base_->loop.mailbox(), residency = std::move(file.residency),
                       fd = std::make_shared<UniqueFd>(std::move(file.fd))]() mutable {
                        residency.reset();  // a mapping holds the mount, too
                        fd->reset();
                        mailbox->post([this] {
                          if (--closing_ == 0 && on_all_closed) on_all_closed();
                        });
                      });
  files_.erase(file.id);
}

void Files::verify(FileId id, Range range) {
  FileEntry* file = find(id);
  if (file == nullptr || file->state != FileEntry::State::kReady) return;
  uint64_t found = 0;
  if (!file->residency->cached(range, &found)) return;
  MountEntry& mount = mounts_[file->device];
  if (found < range.length()) plans_->scheduler.on_lost(id, range.length() - found);
  mount.bad_fills = found * 2 < range.length() ? mount.bad_fills + 1 : 0;
  if (mount.bad_fills >= kBadFills) {
    turn_mount_off(file->device, "what is read does not stay in its page cache");
  } else if (!mount.open_tested && mount.facts.fuse() && found * 2 >= range.length()) {
    test_open(*file, range);
  }
}

// Jobs, and above all their workers, open a file repeatedly. Where an open empties the page cache
// (FUSE), all prefetched data is lost; tested once per mount, early, while little is cached.
void Files::test_open(FileEntry& file, Range range) {
  mounts_[file.device].open_tested = true;
  ++file.in_flight;  // keeps fd open
  base_->executor.run(file.device,
                      [this, mailbox = base_->loop.mailbox(), id = file.id, device = file.device,
                       fd = file.fd.get(), residency = file.residency, range]() mutable {
                        const bool dies = cache_dies_at_open(fd, range, *residency);
                        residency.reset();  // a mapping holds the mount, too
                        mailbox->post([this, id, device, dies] {
                          if (dies) turn_mount_off(device, "an open empties its page cache");
                          read_ended(id);
                        });
                      });
}

}  // namespace sluice::optimizer
