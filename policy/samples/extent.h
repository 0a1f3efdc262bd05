// Where bytes of a sample are: a range of a followed file, or a whole file of the FileTable. Plain
// data, of 16 bytes: tables hold one for each part of each sample.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::optimizer {

// A file of one of two numberings: whole files are numbers of the FileTable, followed ones the
// optimizer's ids. In both 0 is no file.
class FileRef {
 public:
  constexpr FileRef() = default;
  constexpr FileRef(uint32_t followed) : bits_(followed) {}  // REQUIRES: below 1 << 31
  // REQUIRES: 0 < number < 1 << 31.
  static constexpr FileRef whole_file(uint32_t number) { return {kWhole | number}; }

  constexpr bool is_whole() const { return (bits_ & kWhole) != 0; }
  constexpr uint32_t whole() const {
    return is_whole() ? bits_ & ~kWhole : 0;
  }                                                                       // 0: a followed one
  constexpr uint32_t followed() const { return is_whole() ? 0 : bits_; }  // 0: a whole one
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

inline Extent whole_file(uint32_t number) { return {0, 0, FileRef::whole_file(number)}; }

inline bool contains(const Extent& outer, const Extent& inner) {
  return outer.file == inner.file && outer.offset <= inner.offset &&
         outer.offset + outer.length >= inner.offset + inner.length;
}

// Whether the sample is one of files, rather than of records. Of mixed parts the first decides.
inline bool is_of_files(std::span<const Extent> parts) {
  return !parts.empty() && parts.front().file.is_whole();
}

}  // namespace sluice::optimizer
