// One pack (protocol/pack.h): its writer and its reader. Both block in the file system: they run on
// the executor's threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "optimizer/packs/pack_head.h"
#include "protocol/pack.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

inline constexpr const char* kPackTemporary = ".part";  // ends the name of an unfinished pack

// Collects samples in memory. One thread at a time.
class PackBuilder {
 public:
  // `checksum` is Checksum::of the bytes. False, and nothing is done: no pack can hold the sample,
  // or this one would become larger than packs may be.
  bool add(const PackKey& key, const protocol::PackVersion& version, std::vector<char> bytes,
           uint64_t checksum);

  uint64_t bytes() const;                        // of the file that it would be
  static uint64_t bytes_of(const PackKey& key);  // with this sample alone
  // Their `at` counts from the first byte of data.
  std::span<const protocol::PackEntry> entries() const { return entries_; }
  PackKey key(const protocol::PackEntry& entry) const;

  // The pack appears in `folder` whole or not at all. Nothing is forced to the disk: what a crash
  // of the machine leaves of it does not agree with its checksums. 0, or an errno.
  // REQUIRES: at least one sample.
  int write(int folder, const std::string& name) const;

 private:
  std::vector<char> head() const;

  std::vector<protocol::PackEntry> entries_;
  std::string names_;
  std::unordered_map<std::string, uint32_t> path_at_;  // in names_
  std::vector<std::vector<char>> data_;                // small samples share a piece
  uint64_t data_bytes_ = 0;
};

class PackFile;

struct OpenedPack {
  std::shared_ptr<const PackFile> file;
  int error = 0;       // if there is no file: EBADMSG where it is no good pack, else what open said
  std::string reason;  // likewise: a few words
};

// An open pack whose header, index and names have been checked, and are held in memory. Immutable;
// any thread; several may read at a time. The file may be removed meanwhile.
class PackFile {
 public:
  // Only a regular file of our own is opened, and no symbolic link.
  static OpenedPack open(int folder, const std::string& name);
  // The same with the file open already.
  static OpenedPack adopt(UniqueFd fd);

  std::span<const protocol::PackEntry> entries() const { return head_.entries(); }
  // REQUIRES of these: the entry is one of entries(). The key lives as long as this.
  PackKey key(const protocol::PackEntry& entry) const { return head_.key(entry); }
  // Writes the sample's bytes to `to`, at its offset, and checks them on the way. 0, or an errno:
  // EBADMSG where they are damaged, or the file is cut short. What was written is then of no use.
  int copy(const protocol::PackEntry& entry, int to) const;
  // Only checks them.
  int check(const protocol::PackEntry& entry) const;
  // The same into memory.
  int read(const protocol::PackEntry& entry, std::vector<char>* bytes) const;

  uint64_t bytes() const { return bytes_; }              // of the whole file
  uint64_t head_bytes() const { return head_.bytes(); }  // about what this holds in memory

 private:
  PackFile() = default;
  int load(std::string* reason);

  UniqueFd fd_;
  uint64_t bytes_ = 0;
  PackHead head_;
};

}  // namespace sluice::optimizer
