#include <png.h>

#include <cstring>

#include "lmdb/failure.h"
#include "lmdb_tools/codecs.h"

namespace sluice::lmdb {
namespace {

// libpng's simplified reader, which returns errors; freed on every exit path.
class Reader {
 public:
  Reader(std::span<const uint8_t> file, const std::string& name) : name_(name) {
    image_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&image_, file.data(), file.size()) == 0) refuse();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_image_free(&image_); }

  png_image& image() { return image_; }

  void finish(uint8_t* pixels) {
    if (png_image_finish_read(&image_, nullptr, pixels, 0, nullptr) == 0) refuse();
  }

 private:
  [[noreturn]] void refuse() {
    const std::string why = image_.message;
    png_image_free(&image_);
    fail("{} is a damaged PNG file: {}", name_, why);
  }

  png_image image_{};
  const std::string& name_;
};

}  // namespace

bool is_png(std::span<const uint8_t> file) {
  return file.size() >= 8 && memcmp(file.data(), "\x89PNG\r\n\x1a\n", 8) == 0;
}

ImageSize png_size(std::span<const uint8_t> file, const std::string& name) {
  Reader reader(file, name);
  return {reader.image().width, reader.image().height};
}

// Read with its alpha channel, which is dropped afterwards: if none is requested, libpng blends the
// image with a background instead.
Image decode_png(std::span<const uint8_t> file, const std::string& name) {
  Reader reader(file, name);
  const bool colour = (reader.image().format & PNG_FORMAT_FLAG_COLOR) != 0;
  reader.image().format = colour ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;
  const unsigned channels = colour ? 3 : 1;
  Image image{reader.image().width, reader.image().height, channels, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(reader.image()));
  reader.finish(image.pixels.data());
  const size_t count = static_cast<size_t>(image.width) * image.height;
  for (size_t i = 0; i < count; ++i) {
    memmove(&image.pixels[i * channels], &image.pixels[i * (channels + 1)], channels);
  }
  image.pixels.resize(count * channels);
  return image;
}

}  // namespace sluice::lmdb
