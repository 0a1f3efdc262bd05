// The files that samples consist of, by number: path, size, and whether they can be staged. Pure;
// one thread. About 30 bytes per file plus the last component of its path.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/samples/extent.h"
#include "policy/samples/file_fitness.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class FileTable {
 public:
  static constexpr SampleFileId kNone{};
  static constexpr uint32_t kMaxFiles = 1U << 25;
  // What a memory file system takes for a file of that size.
  static uint64_t charge(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096 + 1024; }
  static constexpr uint64_t kMaxBytes = 1ULL << 30;  // of memory: about 20 million files

  // The number of `path`, new or known, from 1; kNone if there is no room for more. REQUIRES:
  // `path` is absolute, contains no NUL and is no longer than the kernel allows.
  SampleFileId intern(std::string_view path);
  SampleFileId find(std::string_view path) const;  // kNone: not known
  std::string path(SampleFileId file) const;
  uint32_t folder(SampleFileId file) const { return entry(file).folder; }
  // Whether some folder is `path`, or is below it.
  bool has_folder_below(std::string_view path) const;
  const std::string& folder_path(uint32_t folder) const { return folders_[folder]; }
  uint32_t folders() const { return static_cast<uint32_t>(folders_.size()); }
  uint32_t size() const { return static_cast<uint32_t>(files_.size()); }
  uint64_t held() const;  // bytes of memory, about

  // Bytes; for a file of unknown size, the mean of the known sizes.
  uint64_t bytes(SampleFileId file) const;
  bool knows_bytes(SampleFileId file) const { return entry(file).bytes != kUnknown; }
  void set_bytes(SampleFileId file, uint64_t bytes);
  uint64_t known_sizes() const { return known_; }  // of how many files the size is known
  // Of parts of a sample, whole files or not: their bytes, and the memory that they take once
  // fetched.
  uint64_t bytes(std::span<const Extent> parts) const;
  uint64_t charge(std::span<const Extent> parts) const;

  // Whether a file is known not to be staged. kForGood: on a mount that is not staged, or not a
  // sample file. kForNow: not a regular file, an error, or too large for the budget: retried when
  // the next order is published.
  enum class Refused : uint8_t { kNo, kForNow, kForGood };
  Refused refused(SampleFileId file) const;
  // How a job used the file. True: it is refused for good from now on.
  bool note_use(SampleFileId file, protocol::FileUse use) { return fitness_.note(file, use); }
  bool unfit(SampleFileId file) const { return fitness_.unfit(file); }
  bool only_locked(SampleFileId file) const { return fitness_.only_locked(file); }
  // The originals of some dataset are prefetched: files that are only locked are no longer refused.
  void accept_locked() { accepts_locked_ = true; }
  void refuse(SampleFileId file) { files_[number(file) - 1].era = era_; }
  void refuse_folder(uint32_t folder) { folder_refused_[folder] = true; }
  void retry_refused() { ++era_; }
  void accept_folders() { folder_refused_.assign(folder_refused_.size(), false); }

 private:
  struct File {
    uint64_t name : 40;  // offset in names_
    uint64_t length : 24;
    uint32_t folder;
    uint32_t bytes;  // kUnknown
    uint32_t era;    // refused for now while equal to era_
  };
  static_assert(sizeof(uint64_t) + 3 * sizeof(uint32_t) == 20);
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static constexpr uint64_t kGuess = 64 << 10;  // bytes, while no size is known

  const File& entry(SampleFileId file) const { return files_[number(file) - 1]; }
  std::string_view name(const File& file) const {
    return std::string_view(names_).substr(file.name, file.length);
  }
  uint32_t folder_number(std::string_view folder, bool add);
  void rehash(size_t slots);

  std::vector<File> files_;
  std::string names_;
  std::vector<std::string> folders_;
  std::set<std::string, std::less<>> sorted_folders_;
  std::vector<bool> folder_refused_;
  std::vector<uint32_t> by_path_;    // open addressing: file numbers, 0 is free
  std::vector<uint32_t> by_folder_;  // likewise: folder numbers + 1
  uint32_t era_ = 1;
  uint64_t known_ = 0, known_bytes_ = 0;
  uint64_t folder_bytes_ = 0;  // of folders_ and their entries in other tables
  FileFitness fitness_;
  bool accepts_locked_ = false;
};

}  // namespace sluice::policy
