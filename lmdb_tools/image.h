// A decoded image, and how it is processed before it becomes a record.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::lmdb {

struct Image {
  uint32_t width = 0, height = 0;  // pixels
  uint32_t channels = 0;           // 1 grey, 3 red, green, blue
  std::vector<uint8_t> pixels;     // row after row, the channels of a pixel together
};

// Images with more pixels are refused: such a header is damaged or an attack.
inline constexpr uint64_t kMaxPixels = 1ULL << 28;

// Decodes a JPEG or PNG file, distinguished by their first bytes. Transparency is dropped, 16 bits
// become 8. Fails, naming `name`, if it is neither or damaged. Thread-safe, as are all functions
// below.
Image decode_image(std::span<const uint8_t> file, const std::string& name);

// Fails as decode_image does, but examines only the header.
void check_image_header(std::span<const uint8_t> file, const std::string& name);

// Converts to grey (the luma of BT.601) or to red, green, blue.
Image with_channels(Image image, uint32_t channels);

// Scales to width x height. Linear interpolation when enlarging; when reducing, the same triangle
// filter widened to cover every source pixel, so that none is skipped. Integer arithmetic: the same
// bytes on every machine.
Image resize(const Image& image, uint32_t width, uint32_t height);

// Caffe's Datum, serialised: planes as B, G, R, or one plane of grey.
std::string make_datum(const Image& image, int32_t label);

// The same for a whole image file, stored encoded; without a shape, like Caffe's own.
std::string make_encoded_datum(std::span<const uint8_t> file, int32_t label);

// nullptr if `bytes` is a complete Datum: its data has as many bytes as its shape requires, or is
// an image file. Else the problem, a static string.
const char* datum_problem(std::span<const uint8_t> bytes);

}  // namespace sluice::lmdb
