// Reads what the header of a file of weights says of its tensors.
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/weights/tensor_list.h"

namespace sluice::optimizer {

// Whether a file of this name is one whose header is read.
bool may_be_weights(std::string_view path);

// Of the file `fd`, `size` bytes long. Empty if it is none, or damaged. Blocks in the file system:
// two reads. Any thread.
policy::TensorList read_tensors(int fd, uint64_t size);

}  // namespace sluice::optimizer
