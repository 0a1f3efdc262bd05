#include "lmdb_tools/image.h"

#include <algorithm>
#include <cstring>

#include "lmdb/failure.h"
#include "lmdb_tools/codecs.h"

namespace sluice::lmdb {
namespace {

void check_size(const ImageSize& size, const std::string& name) {
  if (size.width == 0 || size.height == 0) fail("{} is an image of no size", name);
  if (static_cast<uint64_t>(size.width) * size.height > kMaxPixels) {
    fail("{} is an image of {} x {}, more than 2^28 pixels", name, size.width, size.height);
  }
}

}  // namespace

void check_image_header(std::span<const uint8_t> file, const std::string& name) {
  if (is_jpeg(file)) {
    check_size(jpeg_size(file, name), name);
  } else if (is_png(file)) {
    check_size(png_size(file, name), name);
  } else {
    fail("{} is neither JPEG nor PNG", name);
  }
}

Image decode_image(std::span<const uint8_t> file, const std::string& name) {
  check_image_header(file, name);
  return is_jpeg(file) ? decode_jpeg(file, name) : decode_png(file, name);
}

Image with_channels(Image image, uint32_t channels) {
  if (image.channels == channels) return image;
  Image out{image.width, image.height, channels, {}};
  const size_t count = static_cast<size_t>(image.width) * image.height;
  out.pixels.resize(count * channels);
  const uint8_t* from = image.pixels.data();
  uint8_t* to = out.pixels.data();
  if (channels == 3) {
    for (size_t i = 0; i < count; ++i, to += 3) to[0] = to[1] = to[2] = from[i];
  } else {
    // 0.299 R + 0.587 G + 0.114 B in 16-bit fractions, rounded.
    for (size_t i = 0; i < count; ++i, from += 3) {
      to[i] = static_cast<uint8_t>(
          (19595U * from[0] + 38470U * from[1] + 7471U * from[2] + 32768U) >> 16);
    }
  }
  return out;
}

}  // namespace sluice::lmdb
