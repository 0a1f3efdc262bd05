// A set of bytes of a file as disjoint, maximal intervals. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace sluice::policy {

struct Range {
  uint64_t begin = 0;  // bytes, inclusive
  uint64_t end = 0;    // bytes, exclusive
  uint64_t length() const { return end > begin ? end - begin : 0; }
  bool operator==(const Range&) const = default;
};

class IntervalSet {
 public:
  // Returns how many bytes were not in the set before.
  uint64_t add(Range range);
  // Returns how many bytes were in the set; appends the removed pieces to `removed` if not null.
  uint64_t remove(Range range, std::vector<Range>* removed = nullptr);
  // Bytes of `range` that are in the set.
  uint64_t covered(Range range) const;
  bool contains(Range range) const { return covered(range) == range.length(); }
  // The first byte at or after `from` that is not in the set.
  uint64_t first_gap(uint64_t from) const;

  uint64_t bytes() const { return bytes_; }
  size_t size() const { return pieces_.size(); }  // disjoint pieces
  bool empty() const { return pieces_.empty(); }
  void clear();
  std::vector<Range> pieces() const;
  // The parts of the set in `range`.
  std::vector<Range> pieces_in(Range range) const;

 private:
  std::map<uint64_t, uint64_t> pieces_;  // begin -> end
  uint64_t bytes_ = 0;
};

}  // namespace sluice::policy
