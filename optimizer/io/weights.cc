#include "optimizer/io/weights.h"

#include <unistd.h>

#include <string>

namespace sluice::optimizer {
namespace {

constexpr std::string_view kSafetensors = ".safetensors";

bool read_exactly(int fd, uint64_t offset, uint64_t length, std::string* out) {
  out->resize(length);
  for (size_t done = 0; done < length;) {
    const ssize_t got =
        pread(fd, out->data() + done, length - done, static_cast<off_t>(offset + done));
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

bool may_be_weights(std::string_view path) { return path.ends_with(kSafetensors); }

policy::TensorList read_tensors(int fd, uint64_t size) {
  std::string text;
  if (!read_exactly(fd, 0, policy::kSafetensorsBegin, &text)) return {};
  const uint64_t length = policy::safetensors_header(text, size);
  if (length == 0 || !read_exactly(fd, policy::kSafetensorsBegin, length, &text)) return {};
  return policy::parse_safetensors(text, size);
}

}  // namespace sluice::optimizer
