#include "optimizer/packs/pack_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "optimizer/io/transfer.h"
#include "optimizer/packs/checksum.h"
#include "optimizer/packs/pack_folder.h"
#include "protocol/siphash.h"

namespace sluice::optimizer {
namespace {

using protocol::PackEntry;
using protocol::PackVersion;

// Of the indices of open packs. Samples come from all packs in turns: an index that is not in
// memory is read again for one sample.
constexpr uint64_t kMostOpenHeads = 64 << 20;  // bytes

}  // namespace

PackStore::~PackStore() = default;

// A whole file is itself at any length: one that has grown is another version of it.
uint64_t PackStore::hash_of(const PackKey& key, bool whole) const {
  const uint64_t numbers[] = {key.offset, whole ? UINT64_MAX : key.length};
  std::string text(key.path);
  text.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  return protocol::siphash(secret_, text.data(), text.size()).low;
}

uint64_t PackStore::hash_of(const PackKey& key, const PackVersion& version) const {
  return hash_of(key, key.offset == 0 && key.length == version.size);
}

void PackStore::say(const std::string& line) const {
  if (settings_.say) settings_.say(line);
}

OpenedPack PackStore::open_pack(uint32_t number) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = open_at_.find(number);
    if (at != open_at_.end()) {
      open_.splice(open_.begin(), open_, at->second);
      return {at->second->file, 0, {}};
    }
  }
  OpenedPack opened = PackFile::open(folder_.get(), pack_name(number));
  if (opened.file == nullptr) return opened;
  Waste waste;  // closes what it holds after the lock is released
  const std::lock_guard lock(mutex_);
  // A pack that was removed meanwhile, or that another thread has opened too, is for this once.
  if (open_at_.count(number) != 0 || !index_.has(number)) return opened;
  open_.push_front({number, opened.file});
  open_at_[number] = open_.begin();
  open_heads_ += opened.file->head_bytes();
  while (open_.size() > 1 && (open_.size() > settings_.most_open || open_heads_ > kMostOpenHeads)) {
    close_pack(open_.back().pack, &waste);
  }
  return opened;
}

PackStore::Found PackStore::find(const PackKey& key, const PackVersion& version) {
  const uint64_t hash = hash_of(key, version);
  std::optional<PackIndex::Place> place;
  {
    const std::lock_guard lock(mutex_);
    place = index_.find(hash);
  }
  if (!place) return {};
  const OpenedPack opened = open_pack(place->pack);
  if (opened.error == EBADMSG || opened.error == ENOENT) {
    remove_pack(place->pack, opened.error == EBADMSG);  // or another process has removed it
  }
  if (opened.file == nullptr) return {};
  const std::span<const PackEntry> entries = opened.file->entries();
  if (place->entry >= entries.size()) {  // another file has that name now
    remove_pack(place->pack, true);
    return {};
  }
  const PackEntry& entry = entries[place->entry];
  if (opened.file->key(entry).path != key.path || entry.part != key.offset) return {};
  if (entry.version == version && entry.length == key.length) {
    return {opened.file, &entry, place->pack};
  }
  Waste waste;
  {
    const std::lock_guard lock(mutex_);
    index_.remove_sample(hash, *place);
    waste = take_waste();
  }
  discard(std::move(waste));
  return {};
}

int PackStore::copy(const Found& found, int to) {
  const int error = found.file->copy(*found.entry, to);
  if (error == 0) {
    read_samples_.fetch_add(1, std::memory_order_relaxed);
    read_bytes_.fetch_add(found.entry->length, std::memory_order_relaxed);
  }
  return error;
}

void PackStore::damaged(const Found& found) { remove_pack(found.pack, true); }

void PackStore::remove_pack(uint32_t number, bool is_damaged) {
  Waste waste;
  {
    const std::lock_guard lock(mutex_);
    if (!index_.remove(number)) return;
    if (is_damaged) ++damaged_packs_;
    waste.packs.push_back(number);
    close_pack(number, &waste);
  }
  discard(std::move(waste));
}

bool PackStore::add(const PackKey& key, const PackVersion& version, int from) {
  if (!can_be_packed(key, version) || key.length > kMostSample) return false;
  const uint64_t hash = hash_of(key, version);
  if (will_be_there(hash, key, version) || find(key, version)) return true;
  bool added = false;
  if (has_room(key)) {
    std::vector<char> bytes(key.length);
    added = read_fully(from, bytes.data(), bytes.size(), 0) == 0 &&
            append(hash, key, version, std::move(bytes), nullptr);
  }
  repack();
  return added;
}

bool PackStore::will_be_there(uint64_t hash, const PackKey& key, const PackVersion& version) {
  const std::lock_guard lock(mutex_);
  return std::any_of(batches_.begin(), batches_.end(), [&](const auto& batch) {
    const auto at = batch->wanted.find(hash);
    if (at == batch->wanted.end()) return false;
    const PackEntry& entry = batch->builder.entries()[at->second];
    return batch->builder.key(entry) == key && entry.version == version;
  });
}

std::string PackStore::why_full(const PackKey& key) const {
  uint64_t bytes = index_.bytes() + PackBuilder::bytes_of(key);
  uint64_t samples = index_.samples();
  for (const auto& batch : batches_) {
    bytes += batch->builder.bytes();
    samples += batch->wanted.size();
  }
  if (bytes > settings_.most_bytes) {
    return fmt::format("{} bytes are what packs may take", settings_.most_bytes);
  }
  if (samples >= settings_.most_samples) {
    return fmt::format("{} samples are as many as packs may hold", settings_.most_samples);
  }
  return {};
}

// Queries the file system each time: others write to it too.
bool PackStore::has_room(const PackKey& key) {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return false;
    why = why_full(key);
  }
  struct statvfs about {};
  if (why.empty() && fstatvfs(folder_.get(), &about) == 0 && about.f_blocks != 0 &&
      about.f_bavail * 100 < about.f_blocks * settings_.least_free_percent) {
    why = fmt::format("less than {} % of the file system are left", settings_.least_free_percent);
  }
  room_ = why.empty();
  if (!room_) stop_adding(why);
  return why.empty();
}

void PackStore::stop_adding(const std::string& why) {
  if (!said_.exchange(true)) say(fmt::format("{}: nothing more is packed: {}", path_, why));
}

// `moved`: where it has been until now, and must still be.
bool PackStore::append(uint64_t hash, const PackKey& key, const PackVersion& version,
                       std::vector<char> bytes, const PackIndex::Place* moved) {
  const uint64_t checksum = Checksum::of(bytes.data(), bytes.size());
  std::shared_ptr<Batch> full;
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || (moved != nullptr && index_.find(hash) != *moved)) return false;
    for (const auto& batch : batches_) {
      const auto at = batch->wanted.find(hash);
      if (at == batch->wanted.end()) continue;
      if (moved != nullptr || batch->builder.entries()[at->second].version == version) return true;
      batch->wanted.erase(at);
    }
    // Other threads have added since this one checked.
    if (moved == nullptr && !why_full(key).empty()) return false;
    if (building_ == nullptr) {
      building_ = std::make_shared<Batch>();
      batches_.push_back(building_);
    }
    const auto entry = static_cast<uint32_t>(building_->builder.entries().size());
    if (!building_->builder.add(key, version, std::move(bytes), checksum)) return false;
    building_->wanted[hash] = entry;
    if (building_->builder.bytes() >= settings_.pack_bytes) full = std::move(building_);
  }
  return full == nullptr || write(full);
}

bool PackStore::write(const std::shared_ptr<Batch>& batch) {
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_number_++;
  }
  int error = EOVERFLOW;  // four thousand million packs were written to this folder
  if (number <= UINT32_MAX) {
    error = batch->builder.write(folder_.get(), pack_name(static_cast<uint32_t>(number)));
  }
  Waste waste;
  {
    const std::lock_guard lock(mutex_);
    batches_.remove(batch);
    if (error == 0) {
      publish(*batch, static_cast<uint32_t>(number));
      waste = take_waste();
    } else {
      failed_ = true;
    }
  }
  if (error != 0) stop_adding(strerror(error));
  discard(std::move(waste));
  return error == 0;
}

void PackStore::publish(const Batch& batch, uint32_t number) {
  std::vector<uint32_t> lengths;
  lengths.reserve(batch.builder.entries().size());
  for (const PackEntry& entry : batch.builder.entries()) {
    lengths.push_back(static_cast<uint32_t>(entry.length));
  }
  std::vector<PackIndex::Use> use;
  use.reserve(batch.wanted.size());
  for (const auto& [hash, entry] : batch.wanted) use.push_back({hash, entry});
  index_.add(number, batch.builder.bytes(), std::move(lengths), use, PackIndex::Rank::kNewest);
  written_bytes_ += batch.builder.bytes();
}

// The old pack stays until the new one is there, so that nothing that is on the disk is lost; for
// that moment the packs may take more than most_bytes, by half a pack.
void PackStore::repack() {
  std::optional<uint32_t> number;
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) number = index_.take_sparse();
  }
  if (!number) return;
  const OpenedPack opened = open_pack(*number);
  if (opened.file == nullptr) return;  // the next find() of its samples removes it
  uint32_t at = 0;
  for (const PackEntry& entry : opened.file->entries()) {
    const PackKey key = opened.file->key(entry);
    const uint64_t hash = hash_of(key, entry.version);
    const PackIndex::Place place{*number, at++};
    {
      const std::lock_guard lock(mutex_);
      if (failed_) return;
      if (index_.find(hash) != place || entry.length > kMostSample) continue;
    }
    std::vector<char> bytes;
    const int error = opened.file->read(entry, &bytes);
    if (error == EBADMSG) remove_pack(*number, true);
    if (error != 0) return;
    append(hash, key, entry.version, std::move(bytes), &place);
  }
}

void PackStore::drop(const PackKey& key) {
  Waste waste;
  {
    const std::lock_guard lock(mutex_);
    for (const bool whole : {false, true}) {
      if (whole && key.offset != 0) continue;
      const uint64_t hash = hash_of(key, whole);
      for (const auto& batch : batches_) {
        const auto at = batch->wanted.find(hash);
        if (at == batch->wanted.end()) continue;
        if (batch->builder.entries()[at->second].length == key.length) batch->wanted.erase(at);
      }
      const std::optional<PackIndex::Place> place = index_.find(hash);
      if (place && index_.length(*place) == key.length) index_.remove_sample(hash, *place);
    }
    waste = take_waste();
  }
  discard(std::move(waste));
  repack();
}

void PackStore::flush() {
  std::shared_ptr<Batch> batch;
  {
    const std::lock_guard lock(mutex_);
    if (building_ == nullptr || building_->builder.bytes() < protocol::kPackLeastBytes) return;
    batch = std::move(building_);
  }
  write(batch);
}

PackStore::Waste PackStore::take_waste() {
  Waste waste;
  waste.packs = index_.take_empty();
  for (const uint32_t number : waste.packs) close_pack(number, &waste);
  return waste;
}

void PackStore::close_pack(uint32_t number, Waste* waste) {
  const auto at = open_at_.find(number);
  if (at == open_at_.end()) return;
  open_heads_ -= at->second->file->head_bytes();
  waste->files.push_back(std::move(at->second->file));
  open_.erase(at->second);
  open_at_.erase(at);
}

void PackStore::discard(Waste waste) {
  waste.files.clear();
  for (const uint32_t number : waste.packs) {
    unlinkat(folder_.get(), pack_name(number).c_str(), 0);
  }
}

PackStore::View PackStore::view() {
  View view;
  const std::lock_guard lock(mutex_);
  view.packs = index_.packs();
  view.samples = index_.samples();
  view.bytes = index_.bytes();
  view.useful_bytes = index_.useful();
  view.written_bytes = written_bytes_;
  view.damaged_packs = damaged_packs_;
  view.read_samples = read_samples_.load(std::memory_order_relaxed);
  view.read_bytes = read_bytes_.load(std::memory_order_relaxed);
  view.adding = !failed_ && room_;
  return view;
}

}  // namespace sluice::optimizer
