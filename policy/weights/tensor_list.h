// Where the tensors of a file of weights lie, as its header says. Headers are hostile input: every
// number is checked, and a header that is damaged lists nothing. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::policy {

struct Tensor {
  Range bytes;        // in the file; not empty
  uint32_t kind = 0;  // the same for tensors whose names differ in their numbers alone
  bool rows = false;  // has several, which processes may share
};

using TensorList = std::vector<Tensor>;  // in the file's order, none overlaps another

inline constexpr size_t kMostTensors = 1 << 18;
inline constexpr uint64_t kMostHeader = 4 << 20;  // bytes
inline constexpr size_t kSafetensorsBegin = 8;    // bytes before the header

// The length in bytes of the header that follows the first kSafetensorsBegin bytes of a file of
// `size` bytes; 0: it is no safetensors file, or the header is longer than kMostHeader.
uint64_t safetensors_header(std::string_view begin, uint64_t size);
// `header` without the bytes before it, of a file of `size` bytes.
TensorList parse_safetensors(std::string_view header, uint64_t size);

}  // namespace sluice::policy
