// PackStore's beginning: the folder, and what an earlier run has left in it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "optimizer/packs/pack_folder.h"
#include "optimizer/packs/pack_store.h"

namespace sluice::optimizer {
namespace {

constexpr const char* kLock = "lock";
constexpr uint64_t kMostPackBytes = 32 << 20;

}  // namespace

PackStore::PackStore() {
  std::random_device device;
  for (uint64_t& word : secret_) word = uint64_t{device()} << 32 | device();
}

bool PackStore::open(const Settings& settings, std::string* reason) {
  settings_ = settings;
  settings_.pack_bytes =
      std::clamp<uint64_t>(settings.pack_bytes, protocol::kPackLeastBytes, kMostPackBytes);
  if (!take_folder(settings.base, reason)) return false;
  PackNames names;
  if (const int error = list_packs(folder_.get(), &names)) {
    *reason = path_ + ": " + strerror(error);
    return false;
  }
  // No other process writes here while we have the lock.
  for (const std::string& name : names.leftovers) unlinkat(folder_.get(), name.c_str(), 0);
  load(names.packs);
  return true;
}

bool PackStore::take_folder(const std::string& base, std::string* reason) {
  path_ = packs_folder(base);
  int error = 0;
  folder_ = open_packs_folder(path_, true, &error, reason);
  if (!folder_) return false;
  lock_.reset(openat(folder_.get(), kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_) {
    *reason = path_ + ": " + strerror(errno);
    return false;
  }
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return true;
  *reason = path_ + (errno == EWOULDBLOCK ? std::string(" is in use by another optimizer")
                                          : std::string(": ") + strerror(errno));
  return false;
}

// The newest first, so that the oldest are those for which there is no room.
void PackStore::load(const std::vector<uint32_t>& numbers) {
  std::string problem;
  uint64_t unread = 0;
  bool room = true;
  for (auto at = numbers.rbegin(); at != numbers.rend(); ++at) {
    std::string why;
    const uint64_t damaged_before = damaged_packs_;
    if (room) room = load_one(*at, &why);
    if (!room) unlinkat(folder_.get(), pack_name(*at).c_str(), 0);
    if (why.empty()) continue;
    if (damaged_packs_ == damaged_before) ++unread;
    if (problem.empty()) problem = pack_name(*at) + ": " + why;
  }
  for (const uint32_t number : index_.take_empty()) {
    unlinkat(folder_.get(), pack_name(number).c_str(), 0);
  }
  if (problem.empty()) return;
  say(fmt::format("{}: {} packs were of no use and are removed, {} cannot be read ({})", path_,
                  damaged_packs_, unread, problem));
}

// False: there is no room for it. *problem: why it is none.
bool PackStore::load_one(uint32_t number, std::string* problem) {
  const std::string name = pack_name(number);
  const OpenedPack opened = PackFile::open(folder_.get(), name);
  if (opened.file == nullptr) {
    if (opened.error == ENOENT) return true;
    *problem = opened.reason;
    if (opened.error == EBADMSG) ++damaged_packs_;
    const bool removed = opened.error == EBADMSG && unlinkat(folder_.get(), name.c_str(), 0) == 0;
    if (!removed) next_number_ = std::max(next_number_, uint64_t{number} + 1);
    return true;
  }
  const std::span<const protocol::PackEntry> entries = opened.file->entries();
  if (index_.bytes() + opened.file->bytes() > settings_.most_bytes ||
      index_.samples() + entries.size() > settings_.most_samples) {
    return false;
  }
  std::vector<uint32_t> lengths;
  std::vector<PackIndex::Use> use;
  lengths.reserve(entries.size());
  use.reserve(entries.size());
  for (const protocol::PackEntry& entry : entries) {
    use.push_back(
        {hash_of(opened.file->key(entry), entry.version), static_cast<uint32_t>(lengths.size())});
    lengths.push_back(static_cast<uint32_t>(entry.length));
  }
  index_.add(number, opened.file->bytes(), std::move(lengths), use, PackIndex::Rank::kOldest);
  next_number_ = std::max(next_number_, uint64_t{number} + 1);
  return true;
}

}  // namespace sluice::optimizer
