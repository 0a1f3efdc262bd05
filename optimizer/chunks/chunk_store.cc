#include "optimizer/chunks/chunk_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "optimizer/io/clock.h"
#include "optimizer/packs/checksum.h"
#include "optimizer/packs/pack_file.h"
#include "optimizer/packs/pack_folder.h"

namespace sluice::optimizer {

using protocol::PackEntry;
using protocol::StageStat;
namespace {

// Of the time since the store was opened: 32 bits of them are 136 years, and 0 is never.
constexpr uint64_t kTickNs = 1'000'000'000;
// Samples' attributes beside those that every file has its own of: device, mode, owner. A dataset
// has a few of them.
constexpr size_t kMostKinds = 1024;
// Chunks that are opened at the same time, and are open at the same time.
constexpr size_t kOpeners = 16, kTogether = 64;

uint64_t hash_of(std::string_view path) { return Checksum::of(path.data(), path.size()); }

// Not by the inode: a network file system's may differ from host to host, and a FUSE mount's from
// mount to mount.
uint64_t version_hash(uint64_t size, int64_t modified_s, uint32_t modified_ns, int64_t changed_s,
                      uint32_t changed_ns) {
  const std::array<uint64_t, 4> state = {size, static_cast<uint64_t>(modified_s),
                                         static_cast<uint64_t>(changed_s),
                                         uint64_t{modified_ns} << 32 | changed_ns};
  return Checksum::of(state.data(), sizeof state);
}

bool is_whole(const PackKey& key, const PackEntry& entry) {
  return key.offset == 0 && key.length == entry.version.size && key.length <= UINT32_MAX;
}

// By several threads: on a network mount each chunk's head takes a few of its round trips.
std::vector<OpenedPack> open_all(int folder, std::span<const uint32_t> numbers) {
  std::vector<OpenedPack> opened(numbers.size());
  std::atomic<size_t> next = 0;
  const auto open_some = [&] {
    for (size_t at = next++; at < numbers.size(); at = next++) {
      opened[at] = PackFile::open(folder, pack_name(numbers[at]));
    }
  };
  std::vector<std::jthread> others;
  try {
    while (others.size() < std::min(kOpeners, numbers.size()) - 1) others.emplace_back(open_some);
  } catch (const std::system_error&) {  // no more threads: fewer do it
  }
  open_some();
  others.clear();
  return opened;
}

// What is the same of many files.
StageStat kind_only(StageStat stat) {
  stat.inode = stat.size = stat.blocks = 0;
  stat.accessed_s = stat.modified_s = stat.changed_s = stat.born_s = 0;
  stat.accessed_ns = stat.modified_ns = stat.changed_ns = stat.born_ns = 0;
  return stat;
}

}  // namespace

std::shared_ptr<ChunkStore> ChunkStore::open(const std::string& base, std::string* reason) {
  std::shared_ptr<ChunkStore> store(new ChunkStore);
  const std::string path = chunks_folder(base);
  int error = 0;
  store->folder_ = open_packs_folder(path, false, &error, reason);
  if (!store->folder_) {
    if (error == ENOENT) *reason = path + ": there are no chunks (`sluice chunks make`)";
    return nullptr;
  }
  PackNames names;
  error = list_packs(store->folder_.get(), &names);
  if (error != 0) {
    *reason = path + ": " + strerror(error);
    return nullptr;
  }
  const std::span<const uint32_t> numbers = names.packs;
  for (size_t at = 0; at < numbers.size(); at += kTogether) {
    const auto some = numbers.subspan(at, std::min(kTogether, numbers.size() - at));
    const std::vector<OpenedPack> opened = open_all(store->folder_.get(), some);
    for (size_t i = 0; i < some.size(); ++i) {
      if (opened[i].file != nullptr) store->add(pack_name(some[i]), *opened[i].file);
      store->damaged_ += opened[i].file == nullptr ? 1 : 0;
    }
  }
  if (store->names_.empty()) {
    *reason = path + ": there are no chunks that can be read";
    return nullptr;
  }
  std::ranges::sort(store->slots_, {}, [](const Slot& slot) {
    return std::pair(slot.hash, uint64_t{slot.place.chunk} << 32 | slot.place.entry);
  });
  store->samples_.resize(store->lengths_.size());
  store->opened_ns_ = now_ns();
  return store;
}

void ChunkStore::add(std::string name, const PackFile& file) {
  const auto chunk = static_cast<uint32_t>(names_.size());
  names_.push_back(std::move(name));
  chunk_bytes_.push_back(file.bytes());
  first_.push_back(lengths_.size());
  uint32_t at = 0;
  for (const PackEntry& entry : file.entries()) {
    const PackKey key = file.key(entry);
    lengths_.push_back(static_cast<uint32_t>(entry.length));
    const protocol::PackVersion& version = entry.version;
    versions_.push_back(version_hash(version.size, version.modified_s, version.modified_ns,
                                     version.changed_s, version.changed_ns));
    if (is_whole(key, entry)) slots_.push_back({hash_of(key.path), {chunk, at}});
    ++at;
  }
}

std::optional<ChunkStore::Place> ChunkStore::find(std::string_view path) const {
  const uint64_t hash = hash_of(path);
  const auto slot = std::ranges::lower_bound(slots_, hash, {}, &Slot::hash);
  if (slot == slots_.end() || slot->hash != hash) return std::nullopt;
  return slot->place;
}

std::unique_ptr<ChunkRead> ChunkStore::read(uint32_t chunk) const {
  return std::make_unique<ChunkRead>(folder_.get(), names_[chunk]);
}

std::optional<uint32_t> ChunkStore::kind_of(const StageStat& stat) {
  const StageStat kind = kind_only(stat);
  const auto known = std::ranges::find_if(
      kinds_, [&kind](const StageStat& one) { return memcmp(&one, &kind, sizeof kind) == 0; });
  if (known != kinds_.end()) return static_cast<uint32_t>(known - kinds_.begin());
  if (kinds_.size() == kMostKinds) return std::nullopt;
  kinds_.push_back(kind);
  return static_cast<uint32_t>(kinds_.size() - 1);
}

bool ChunkStore::check(Place place, const StageStat& stat, uint64_t at_ns) {
  const bool same =
      versions_[number(place)] ==
      version_hash(stat.size, stat.modified_s, stat.modified_ns, stat.changed_s, stat.changed_ns);
  const std::lock_guard lock(mutex_);
  Sample& known = samples_[number(place)];
  known.checked = 0;
  const std::optional<uint32_t> kind = same ? kind_of(stat) : std::nullopt;
  // What hard links or a symbolic link lead to may change unseen: it is compared each time.
  if (!kind || stat.links != 1 || stat.blocks > UINT32_MAX) return same;
  known = {.inode = stat.inode,
           .accessed_s = stat.accessed_s,
           .born_s = stat.born_s,
           .accessed_ns = stat.accessed_ns,
           .born_ns = stat.born_ns,
           .blocks = static_cast<uint32_t>(stat.blocks),
           .kind = *kind,
           .checked = static_cast<uint32_t>((at_ns - std::min(at_ns, opened_ns_)) / kTickNs) + 1};
  return true;
}

std::optional<ChunkStore::Checked> ChunkStore::checked(Place place, const PackEntry& member,
                                                       uint64_t since_ns) const {
  const std::lock_guard lock(mutex_);
  const Sample& known = samples_[number(place)];
  if (known.checked == 0) return std::nullopt;
  // Rounded down: rather too old than too new.
  const uint64_t at_ns = opened_ns_ + (known.checked - 1) * kTickNs;
  if (at_ns < since_ns) return std::nullopt;
  StageStat stat = kinds_[known.kind];
  stat.inode = known.inode;
  stat.size = member.version.size;
  stat.blocks = known.blocks;
  stat.accessed_s = known.accessed_s;
  stat.modified_s = member.version.modified_s;
  stat.changed_s = member.version.changed_s;
  stat.born_s = known.born_s;
  stat.accessed_ns = known.accessed_ns;
  stat.modified_ns = member.version.modified_ns;
  stat.changed_ns = member.version.changed_ns;
  stat.born_ns = known.born_ns;
  return Checked{stat, at_ns};
}

void ChunkStore::doubt(std::string_view path) {
  const std::optional<Place> place = find(path);
  const std::lock_guard lock(mutex_);
  if (place) samples_[number(*place)].checked = 0;
}

void ChunkStore::doubt_all() {
  const std::lock_guard lock(mutex_);
  for (Sample& one : samples_) one.checked = 0;
}

}  // namespace sluice::optimizer
