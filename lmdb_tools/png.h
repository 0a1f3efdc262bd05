// PNG by libpng. Functions are thread-safe and throw a Failure that names `name`.
#pragma once

#include "lmdb_tools/image.h"
#include "lmdb_tools/jpeg.h"

namespace sluice::lmdb {

bool is_png(std::span<const uint8_t> file);
ImageSize png_size(std::span<const uint8_t> file, const std::string& name);

// Grey stays grey, everything else becomes red, green, blue. Transparency is dropped, not blended.
Image decode_png(std::span<const uint8_t> file, const std::string& name);

}  // namespace sluice::lmdb
