// Which part of each tensor one reader reads: a process of a tensor-parallel job reads its share of
// the rows, in whatever order it takes the tensors. What it has read of tensors that it has left is
// expected of those of the same kind, and of others until they are known. Pure; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "policy/util/interval_set.h"
#include "policy/weights/tensor_list.h"

namespace sluice::policy {

// Where a reader that began to read at `begin`, within Shares::kBlur, is likely to end: if that is
// where the second or a later one of n equal parts of a tensor begins, where the next part does.
std::optional<uint64_t> likely_end(const TensorList& tensors, uint64_t begin);

class Shares {
 public:
  // The reader was found to have read `range`, within kBlur at both ends. `tensors` is the same for
  // all calls. True: what is expected has changed.
  bool on_read(const TensorList& tensors, Range range, uint64_t time_ns);

  // Some tensor was read and left.
  bool known() const { return usual_.has_value(); }
  // It reads parts of tensors.
  bool partial() const { return known() && partial_; }
  // It goes back to tensors that lie before others that it has read.
  bool unordered() const { return backward_ > kBackward; }
  uint64_t bytes() const { return bytes_; }  // that it was found to have read
  // Tensors of which it touched the first page alone, so far.
  uint64_t heads_alone() const { return heads_ - std::min(heads_, begins_); }

  // What it is likely to read of the first tensor that it began. REQUIRES: not known().
  std::optional<Range> guess(const TensorList& tensors) const;
  // While it has begun one tensor alone: how far to read ahead. A reader that opens a file for one
  // tensor reads no other; so a little beyond its end, which is read while the next becomes known.
  std::optional<uint64_t> first_end(const TensorList& tensors) const;
  // What it is expected to read of the tensor that was begun last. REQUIRES: known().
  Range current(const TensorList& tensors) const { return share_in(tensors[last_]); }
  // What it is expected to read, at most `most` bytes, in the file's order: from the tensor that
  // was begun last on, or if unordered() from the one at `from` on. What was read is part of it;
  // of very many tensors it is the first ones. REQUIRES: known().
  std::vector<Range> expected(const TensorList& tensors, uint64_t from, uint64_t most) const;

  // One fault maps up to 64 KiB of cached pages around it.
  static constexpr uint64_t kBlur = 64 << 10;

 private:
  // Of a tensor's bytes, from 0 to 1.
  struct Share {
    double begin = 0, end = 1;
  };
  struct Learned {
    Share share;
    std::optional<Share> other;  // of the latest tensor of the kind, if it differs
  };
  struct Open {
    size_t tensor = 0;
    Range touched;  // bytes
    uint64_t last_ns = 0;
    uint64_t number = 0;  // of tensors begun before it
    bool judged = false;  // its share was learned from
  };
  static constexpr size_t kMostOpen = 64;
  static constexpr unsigned kBackward = 2;
  static constexpr uint64_t kBeyondFirst = 1 << 20;
  static constexpr size_t kReturns = 4;

  void touch(const TensorList& tensors, size_t tensor, Range part, uint64_t time_ns);
  void touch_again(Open* open, Range part, uint64_t time_ns);
  bool judge(const TensorList& tensors, uint64_t time_ns);
  bool left(const Open& one, uint64_t time_ns) const;
  Range share_in(const Tensor& tensor) const;
  bool learn(uint32_t kind, Share share);
  static Share share_of(Range tensor, Range touched);

  std::vector<Open> open_;   // touched, the first begun first; bounded
  std::vector<bool> begun_;  // by tensor
  std::map<uint32_t, Learned> by_kind_;
  std::optional<Share> usual_;  // what was learned last
  bool partial_ = false;
  bool unlearned_ = false;           // since the last call of on_read()
  size_t last_ = 0, furthest_ = 0;   // tensors that were begun
  size_t touched_ = 0;               // the tensor that was touched last
  uint64_t begins_ = 0, heads_ = 0;  // tensors; of these, first pages that were touched alone
  uint64_t bytes_ = 0;
  unsigned backward_ = 0;
  std::array<uint64_t, kReturns> returns_ns_{};  // to a tensor after another one; latest last
};

}  // namespace sluice::policy
