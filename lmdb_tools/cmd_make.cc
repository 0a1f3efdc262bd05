#include <algorithm>
#include <charconv>
#include <memory>

#include "lmdb/failure.h"
#include "lmdb_tools/commands.h"
#include "lmdb_tools/copy.h"
#include "lmdb_tools/progress.h"
#include "protocol/options.h"

namespace sluice::lmdb {
namespace {

constexpr uint32_t kMaxSide = 65535;  // pixels

struct Shape {
  uint32_t width = 0, height = 0;  // 0: as in the image
};

[[noreturn]] void usage(const std::string& problem) { throw Usage(problem); }

Shape parse_shape(const std::string& text) {
  Shape shape;
  const char* end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, shape.width);
  const char* x = width.ptr;
  const auto height = std::from_chars(std::min(x + 1, end), end, shape.height);
  if (width.ec != std::errc{} || x == end || *x != 'x' || height.ec != std::errc{} ||
      height.ptr != end || shape.width == 0 || shape.height == 0 || shape.width > kMaxSide ||
      shape.height > kMaxSide) {
    usage("--resize " + text + " is not a size such as 256x256");
  }
  return shape;
}

uint64_t parse_size(const std::string& text) {
  uint64_t bytes = 0;
  if (!protocol::parse_bytes(text.c_str(), &bytes) || bytes == 0) {
    usage("--min-bytes " + text + " is not a size such as 512M");
  }
  return bytes;
}

// Images as Datums, starting again from the first after the last.
class DatumSource : public RecordSource {
 public:
  DatumSource(const ImageSource& images, const MakeOptions& options, Shape shape)
      : images_(images), encoded_(options.encoded), shape_(shape) {
    // As in Caffe: all images of a folder become colour, so that they have one shape.
    if (images.has_files()) channels_ = options.grey ? 1 : 3;
  }

  uint64_t count() const override { return images_.count(); }

  KeyValue read(uint64_t index) const override {
    const uint64_t image = index % images_.count();
    return {record_key(index, images_.name(image)), datum(image)};
  }

 private:
  std::string datum(uint64_t image) const {
    if (encoded_) return make_encoded_datum(images_.encoded(image), images_.label(image));
    Image decoded = images_.decoded(image);
    if (channels_ != 0) decoded = with_channels(std::move(decoded), channels_);
    if (shape_.width != 0) decoded = resize(decoded, shape_.width, shape_.height);
    return make_datum(decoded, images_.label(image));
  }

  const ImageSource& images_;
  const bool encoded_;
  const Shape shape_;
  uint32_t channels_ = 0;  // 0: as in the image
};

void check(const MakeOptions& options) {
  if (options.paths.size() != (options.idx.empty() ? 2 : 1)) {
    usage("make needs a folder and OUT, or --idx IMAGES LABELS and OUT");
  }
  if (options.encoded && !options.idx.empty()) usage("--encoded: idx files hold no image files");
  if (options.encoded && (!options.resize.empty() || options.grey)) {
    usage("--encoded stores the image files as they are: no --resize, no --grey");
  }
}

}  // namespace

void make(const MakeOptions& options) {
  check(options);
  const Shape shape = options.resize.empty() ? Shape{} : parse_shape(options.resize);
  CopyLimits limits{options.count, 0, options.commit};
  if (!options.min_bytes.empty()) limits.bytes = parse_size(options.min_bytes);
  const auto images = options.idx.empty() ? open_folder(options.paths[0])
                                          : open_idx(options.idx[0], options.idx[1]);
  const DatumSource records(*images, options, shape);
  const std::string& out = options.paths.back();
  const std::string job = fmt::format(
      "sluice-lmdb make\n{}\nencoded {} grey {} resize {}x{}\ncount {} bytes {} commit {}\n",
      images->identity(), options.encoded, options.grey, shape.width, shape.height, limits.records,
      limits.bytes, limits.commit);
  DatabaseWriter writer(out, job);
  copy_records(records, limits, "make", &writer);
  writer.publish();
  fmt::print("{}: {} records, {} of values\n", out, writer.records(), human_bytes(writer.bytes()));
  check_output();
}

}  // namespace sluice::lmdb
