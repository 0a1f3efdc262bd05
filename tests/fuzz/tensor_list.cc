// The header of a file of weights made of arbitrary bytes. Whatever it says, the tensors that are
// listed lie in the file, in its order and apart; what is expected of a reader of them does, too.
#include "policy/weights/tensor_list.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/weights/shares.h"

namespace {

using namespace sluice::policy;

void require(bool good) {
  if (!good) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const uint64_t file_size = kSafetensorsBegin + size + (uint64_t{1} << 40);
  require(safetensors_header(text, size) + kSafetensorsBegin <= size + kSafetensorsBegin);
  const TensorList tensors = parse_safetensors(text, file_size);
  uint64_t at = kSafetensorsBegin + size;
  for (const Tensor& tensor : tensors) {
    require(tensor.bytes.begin >= at && tensor.bytes.end <= file_size && tensor.bytes.length() > 0);
    at = tensor.bytes.end;
  }
  Shares shares;
  for (size_t i = 0; i < size && !tensors.empty(); ++i) {
    const uint64_t begin = tensors.front().bytes.begin + (uint64_t{data[i]} << 18);
    shares.on_read(tensors, {begin, begin + (uint64_t{1} + data[i] % 8) * 100'000}, 10'000'000 * i);
  }
  if (!shares.known()) return 0;
  for (const Range& range : shares.expected(tensors, 0, UINT64_MAX)) {
    require(range.begin <= range.end && range.end <= file_size);
  }
  return 0;
}
