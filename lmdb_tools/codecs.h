// JPEG by libjpeg and PNG by libpng. Functions are thread-safe and throw a Failure that names
// `name`.
#pragma once

#include "lmdb_tools/image.h"

namespace sluice::lmdb {

struct ImageSize {
  uint32_t width, height;  // pixels
};

bool is_jpeg(std::span<const uint8_t> file);
ImageSize jpeg_size(std::span<const uint8_t> file, const std::string& name);

// Grey stays grey, everything else becomes red, green, blue. A truncated file, or one in which
// libjpeg had to repair something, is refused.
Image decode_jpeg(std::span<const uint8_t> file, const std::string& name);

bool is_png(std::span<const uint8_t> file);
ImageSize png_size(std::span<const uint8_t> file, const std::string& name);

// Grey stays grey, everything else becomes red, green, blue. Transparency is dropped, not blended.
Image decode_png(std::span<const uint8_t> file, const std::string& name);

}  // namespace sluice::lmdb
