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

struct Options {
  std::vector<std::string> idx;    // images, labels
  std::vector<std::string> paths;  // [SOURCE] OUT
  bool encoded = false;
  bool grey = false;
  std::string resize;
  std::string min_bytes;
  uint64_t count = 0;
  uint64_t commit = 1024;
};

struct Shape {
  uint32_t width = 0, height = 0;  // 0: as in the image
};

// Reports `problem` as a usage error of the parser.
[[noreturn]] void usage(const std::string& problem) { throw CLI::ValidationError(problem); }

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
  DatumSource(const ImageSource& images, const Options& options, Shape shape)
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

void check(const Options& options) {
  if (options.paths.size() != (options.idx.empty() ? 2 : 1)) {
    usage("make needs a folder and OUT, or --idx IMAGES LABELS and OUT");
  }
  if (options.encoded && !options.idx.empty()) usage("--encoded: idx files hold no image files");
  if (options.encoded && (!options.resize.empty() || options.grey)) {
    usage("--encoded stores the image files as they are: no --resize, no --grey");
  }
}

void make(const Options& options) {
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

}  // namespace

void add_make(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("make", "Make a database of Caffe Datum records from images");
  command->footer(
      "For instance\n"
      "  sluice-lmdb make FOLDER OUT\n"
      "  sluice-lmdb make --idx IMAGES LABELS OUT\n"
      "\n"
      "SOURCE is a folder of .jpg, .jpeg and .png files, whose subfolders in sorted order are\n"
      "the classes 0, 1, ...; or --idx names two idx files. Keys are 00000000_NAME and ascend\n"
      "as the records were written. Decoded images are stored as planes, colour as B, G, R. The\n"
      "database is made in OUT.partial and renamed when it is whole; interrupted, the same\n"
      "command continues it and makes the very same file. OUT must not exist.");
  command->add_option("--idx", options->idx, "idx files of images and labels, plain or gzip")
      ->expected(2)
      ->type_name("IMAGES LABELS");
  command->add_option("paths", options->paths, "the folder, unless --idx is given, and OUT")
      ->required()
      ->expected(1, 2)
      ->type_name("[SOURCE] OUT");
  command->add_flag("--encoded", options->encoded, "store image files as they are");
  command->add_flag("--grey,--gray", options->grey, "one plane of grey instead of three of colour");
  command->add_option("--resize", options->resize, "scale to this size")->type_name("WxH");
  auto* count = command->add_option("--count", options->count,
                                    "this many records, repeating the images in turn if need be");
  count->type_name("N")->check(CLI::Range(uint64_t{1}, uint64_t{100'000'000}));
  command
      ->add_option("--min-bytes", options->min_bytes,
                   "as many records as make this many bytes of values, repeating the images in "
                   "turn")
      ->type_name("SIZE")
      ->excludes(count);
  command->add_option("--commit", options->commit, "records of a transaction at most")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000}));
  command->callback([options] { make(*options); });
}

}  // namespace sluice::lmdb
