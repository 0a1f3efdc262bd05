#include <climits>

#include "lmdb/failure.h"
#include "lmdb_tools/datum.pb.h"
#include "lmdb_tools/image.h"

namespace sluice::lmdb {

std::string make_datum(const Image& image, int32_t label) {
  Datum datum;
  datum.set_channels(static_cast<int32_t>(image.channels));
  datum.set_height(static_cast<int32_t>(image.height));
  datum.set_width(static_cast<int32_t>(image.width));
  const size_t plane = static_cast<size_t>(image.width) * image.height;
  std::string* data = datum.mutable_data();
  data->resize(plane * image.channels);
  for (uint32_t c = 0; c < image.channels; ++c) {
    const uint8_t* from = image.pixels.data() + (image.channels - 1 - c);
    char* to = data->data() + plane * c;
    for (size_t i = 0; i < plane; ++i) to[i] = static_cast<char>(from[i * image.channels]);
  }
  datum.set_label(label);
  return datum.SerializeAsString();
}

std::string make_encoded_datum(std::span<const uint8_t> file, int32_t label) {
  Datum datum;
  datum.set_data(file.data(), file.size());
  datum.set_label(label);
  datum.set_encoded(true);
  return datum.SerializeAsString();
}

const char* datum_problem(std::span<const uint8_t> bytes) {
  Datum datum;
  if (bytes.size() > INT_MAX ||
      !datum.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return "is not a Datum";
  }
  if (datum.encoded()) {
    const auto* data = reinterpret_cast<const uint8_t*>(datum.data().data());
    try {
      check_image_header({data, datum.data().size()}, "");
    } catch (const Failure&) {
      return "is an encoded Datum without a JPEG or PNG image in it";
    }
    return nullptr;
  }
  if (datum.channels() <= 0 || datum.height() <= 0 || datum.width() <= 0) {
    return "is a Datum without a shape";
  }
  const auto pixels = static_cast<unsigned __int128>(datum.channels()) *
                      static_cast<unsigned>(datum.height()) * static_cast<unsigned>(datum.width());
  const size_t held =
      datum.data().empty() ? static_cast<size_t>(datum.float_data_size()) : datum.data().size();
  return pixels == held ? nullptr : "is a Datum whose data is not of its shape";
}

}  // namespace sluice::lmdb
