// Where bytes of a sample are: a range of a followed file, or a whole file of the FileTable. Plain
// data, of 16 bytes: tables hold one for each part of each sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "policy/util/ids.h"

namespace sluice::policy {

// A followed file, or a whole one; initially neither.
class FileRef {
 public:
  constexpr FileRef() = default;
  constexpr FileRef(FileId followed) : bits_(number(followed)) {}  // REQUIRES: below 1 << 31
  // REQUIRES: 0 < number(file) < 1 << 31.
  static constexpr FileRef whole_file(SampleFileId file) {
    FileRef ref;
    ref.bits_ = kWhole | number(file);
    return ref;
  }

  constexpr bool is_whole() const { return (bits_ & kWhole) != 0; }
  // Zero: a followed one.
  constexpr SampleFileId whole() const { return SampleFileId{is_whole() ? bits_ & ~kWhole : 0}; }
  // kNoFile: a whole one.
  constexpr FileId followed() const { return FileId{is_whole() ? 0 : bits_}; }
  bool operator==(const FileRef&) const = default;

 private:
  static constexpr uint32_t kWhole = 1U << 31;
  uint32_t bits_ = 0;
};

// [offset, offset + length) of a followed file, bytes; of a whole file, all of it.
struct Extent {
  uint64_t offset = 0;
  uint32_t length = 0;
  FileRef file;
  bool operator==(const Extent&) const = default;
};
static_assert(sizeof(Extent) == 16);

inline Extent whole_file(SampleFileId file) { return {0, 0, FileRef::whole_file(file)}; }

inline bool contains(const Extent& outer, const Extent& inner) {
  return outer.file == inner.file && outer.offset <= inner.offset &&
         outer.offset + outer.length >= inner.offset + inner.length;
}

// Whether the sample is one of files, rather than of records. Of mixed parts the first decides.
inline bool is_of_files(std::span<const Extent> parts) {
  return !parts.empty() && parts.front().file.is_whole();
}

// Of a record that lies in several places (in LMDB also in pages that it shares with others), the
// part that has most of it. REQUIRES: !parts.empty().
inline const Extent& main_part(std::span<const Extent> parts) {
  return *std::ranges::max_element(parts, {}, &Extent::length);
}

}  // namespace sluice::policy
