#include "policy/samples/file_table.h"

#include <algorithm>
#include <functional>

namespace sluice::policy {
namespace {

constexpr size_t kFirstSlots = 64;
constexpr uint64_t kFileBytes = 28;     // of a file, including its slot in by_path_
constexpr uint64_t kFolderBytes = 160;  // of a folder, in addition to twice its name

// Splits "/a/b/c" into "/a/b" and "c".
void split(std::string_view path, std::string_view* folder, std::string_view* name) {
  const size_t slash = path.rfind('/');
  *folder = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  *name = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
}

uint64_t mixed(uint64_t folder, std::string_view name) {
  return (std::hash<std::string_view>{}(name) ^ (folder + 1) * 0x9e3779b97f4a7c15ULL) *
         0xff51afd7ed558ccdULL;
}

}  // namespace

uint32_t FileTable::folder_number(std::string_view folder, bool add) {
  if (add && by_folder_.size() < 2 * (folders_.size() + 1)) {
    by_folder_.assign(std::max(kFirstSlots, 4 * folders_.size()), 0);
    for (uint32_t i = 0; i < folders_.size(); ++i) {
      size_t at = std::hash<std::string_view>{}(folders_[i]) % by_folder_.size();
      while (by_folder_[at] != 0) at = (at + 1) % by_folder_.size();
      by_folder_[at] = i + 1;
    }
  }
  if (by_folder_.empty()) return UINT32_MAX;
  size_t at = std::hash<std::string_view>{}(folder) % by_folder_.size();
  for (; by_folder_[at] != 0; at = (at + 1) % by_folder_.size()) {
    if (folders_[by_folder_[at] - 1] == folder) return by_folder_[at] - 1;
  }
  if (!add) return UINT32_MAX;
  folders_.emplace_back(folder);
  folder_bytes_ += kFolderBytes + 2 * folder.size();
  sorted_folders_.emplace(folder);
  folder_refused_.push_back(false);
  by_folder_[at] = static_cast<uint32_t>(folders_.size());
  return by_folder_[at] - 1;
}

void FileTable::rehash(size_t slots) {
  by_path_.assign(slots, 0);
  for (uint32_t i = 0; i < files_.size(); ++i) {
    uint64_t at = mixed(files_[i].folder, name(files_[i])) % slots;
    while (by_path_[at] != 0) at = (at + 1) % slots;
    by_path_[at] = i + 1;
  }
}

uint64_t FileTable::held() const {
  return files_.size() * kFileBytes + names_.size() + folder_bytes_;
}

SampleFileId FileTable::intern(std::string_view path) {
  std::string_view folder;
  std::string_view last;
  split(path, &folder, &last);
  const bool full = files_.size() >= kMaxFiles || held() >= kMaxBytes;
  const uint32_t in = folder_number(folder, !full);
  if (in == UINT32_MAX) return kNone;
  if (by_path_.size() < files_.size() + files_.size() / 2 + 2) {
    rehash(std::max(kFirstSlots, 2 * files_.size()));
  }
  uint64_t at = mixed(in, last) % by_path_.size();
  for (; by_path_[at] != 0; at = (at + 1) % by_path_.size()) {
    const File& file = files_[by_path_[at] - 1];
    if (file.folder == in && name(file) == last) return SampleFileId{by_path_[at]};
  }
  if (full) return kNone;
  File file{};
  file.name = names_.size();
  file.length = last.size();
  file.folder = in;
  file.bytes = kUnknown;
  names_.append(last);
  files_.push_back(file);
  by_path_[at] = static_cast<uint32_t>(files_.size());
  return SampleFileId{by_path_[at]};
}

SampleFileId FileTable::find(std::string_view path) const {
  std::string_view folder;
  std::string_view last;
  split(path, &folder, &last);
  if (by_path_.empty() || by_folder_.empty()) return kNone;
  const uint32_t in = const_cast<FileTable*>(this)->folder_number(folder, false);
  if (in == UINT32_MAX) return kNone;
  uint64_t at = mixed(in, last) % by_path_.size();
  for (; by_path_[at] != 0; at = (at + 1) % by_path_.size()) {
    const File& file = files_[by_path_[at] - 1];
    if (file.folder == in && name(file) == last) return SampleFileId{by_path_[at]};
  }
  return kNone;
}

std::string FileTable::path(SampleFileId file) const {
  std::string out = folders_[entry(file).folder];
  out += '/';
  out += name(entry(file));
  return out;
}

bool FileTable::has_folder_below(std::string_view path) const {
  const auto at = sorted_folders_.lower_bound(path);
  if (at == sorted_folders_.end()) return false;
  if (*at == path) return true;
  const auto inside = sorted_folders_.lower_bound(std::string(path) + "/");
  return inside != sorted_folders_.end() &&
         std::string_view(*inside).substr(0, path.size() + 1) == std::string(path) + "/";
}

uint64_t FileTable::bytes(SampleFileId file) const {
  const uint32_t bytes = entry(file).bytes;
  if (bytes != kUnknown) return bytes;
  return known_ == 0 ? kGuess : std::max<uint64_t>(known_bytes_ / known_, 1);
}

void FileTable::set_bytes(SampleFileId file, uint64_t bytes) {
  uint32_t& known = files_[number(file) - 1].bytes;
  if (known != kUnknown) {
    known_bytes_ -= known;
    --known_;
  }
  known = static_cast<uint32_t>(std::min<uint64_t>(bytes, kUnknown - 1));
  known_bytes_ += known;
  ++known_;
}

uint64_t FileTable::bytes(std::span<const Extent> parts) const {
  uint64_t sum = 0;
  for (const Extent& part : parts) {
    sum += part.file.is_whole() ? bytes(part.file.whole()) : part.length;
  }
  return sum;
}

uint64_t FileTable::charge(std::span<const Extent> parts) const {
  uint64_t sum = 0;
  for (const Extent& part : parts) {
    sum += part.file.is_whole() ? charge(bytes(part.file.whole())) : part.length;
  }
  return sum;
}

FileTable::Refused FileTable::refused(SampleFileId file) const {
  const File& entry = this->entry(file);
  const bool unfit = fitness_.unfit(file) && !(accepts_locked_ && fitness_.only_locked(file));
  if (folder_refused_[entry.folder] || unfit) return Refused::kForGood;
  return entry.era == era_ ? Refused::kForNow : Refused::kNo;
}

}  // namespace sluice::policy
