#include "optimizer/packs/pack_head.h"

#include <cstring>
#include <utility>

#include "optimizer/packs/checksum.h"

namespace sluice::optimizer {
namespace {

using protocol::PackEntry;
using protocol::PackHeader;
using protocol::PackVersion;

bool is_path(std::string_view path) {
  return !path.empty() && path.size() <= protocol::kPackMaxPath && path[0] == '/';
}

bool is_part(uint64_t offset, uint64_t length, const PackVersion& version) {
  constexpr uint32_t kSecond = 1'000'000'000;
  return offset <= version.size && length <= version.size - offset &&
         version.modified_ns < kSecond && version.changed_ns < kSecond;
}

}  // namespace

bool can_be_packed(const PackKey& key, const PackVersion& version) {
  return is_path(key.path) && key.path.find('\0') == std::string_view::npos &&
         is_part(key.offset, key.length, version);
}

uint64_t PackHead::bytes_of(std::span<const char> first, uint64_t file_bytes, std::string* reason) {
  const auto bad = [reason](const char* why) {
    *reason = why;
    return uint64_t{0};
  };
  PackHeader header;
  if (first.size() < sizeof header || file_bytes < sizeof header) return bad("cut short");
  memcpy(&header, first.data(), sizeof header);
  if (header.magic != protocol::kPackMagic) return bad("not a pack");
  if (header.version != protocol::kPackVersion) return bad("a pack of another version");
  if (header.bytes != file_bytes) return bad("not as long as it says");
  if (header.bytes > protocol::kPackMaxBytes) return bad("too large for a pack");
  if (header.samples == 0 || header.entry_size != sizeof(PackEntry) ||
      header.index_bytes != uint64_t{header.samples} * sizeof(PackEntry) ||
      header.index_bytes > protocol::kPackMaxHead || header.names_bytes > protocol::kPackMaxHead) {
    return bad("its header makes no sense");
  }
  const uint64_t bytes = sizeof header + header.index_bytes + header.names_bytes;
  if (bytes > protocol::kPackMaxHead || bytes > file_bytes) return bad("its header makes no sense");
  return bytes;
}

bool PackHead::parse(std::span<const char> head, uint64_t file_bytes, std::string* reason) {
  const auto bad = [reason](const char* why) {
    *reason = why;
    return false;
  };
  bytes_ = bytes_of(head, file_bytes, reason);
  if (bytes_ == 0) return false;
  if (head.size() < bytes_) return bad("cut short");
  PackHeader header;
  memcpy(&header, head.data(), sizeof header);
  const uint64_t said = std::exchange(header.checksum, 0);
  Checksum checksum;
  checksum.add(&header, sizeof header);
  checksum.add(head.data() + sizeof header, bytes_ - sizeof header);
  if (checksum.value() != said) return bad("its index is damaged");
  entries_.resize(header.samples);
  memcpy(entries_.data(), head.data() + sizeof header, header.index_bytes);
  names_.assign(head.data() + sizeof header + header.index_bytes, header.names_bytes);
  return entries_make_sense(file_bytes) || bad("its index makes no sense");
}

bool PackHead::entries_make_sense(uint64_t file_bytes) const {
  if (names_.find('\0') != std::string::npos) return false;
  uint64_t at = bytes_;
  for (const PackEntry& entry : entries_) {
    if (entry.at != at || entry.length > file_bytes - at) return false;
    at += entry.length;
    if (entry.path > names_.size() || entry.path_length > names_.size() - entry.path ||
        !is_path(std::string_view(names_).substr(entry.path, entry.path_length)) ||
        !is_part(entry.part, entry.length, entry.version)) {
      return false;
    }
  }
  return at == file_bytes;
}

PackKey PackHead::key(const PackEntry& entry) const {
  return {std::string_view(names_).substr(entry.path, entry.path_length), entry.part, entry.length};
}

}  // namespace sluice::optimizer
