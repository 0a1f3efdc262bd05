#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lmdb/failure.h"
#include "lmdb_tools/source.h"

namespace sluice::lmdb {
namespace {

constexpr uint32_t kBytesIn1 = 0x0801;  // unsigned bytes in one dimension
constexpr uint32_t kBytesIn3 = 0x0803;
constexpr uint32_t kMaxSide = 65535;  // pixels

// Reads gzip and plain files alike.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rbe")) {
    if (file_ == nullptr) fail("cannot open {}: {}", path, strerror(errno));
    gzbuffer(file_, 1 << 18);
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile() { gzclose(file_); }

  uint32_t number() {
    uint8_t bytes[4];
    if (read(bytes, 4) != 4) fail("{} is too short for an idx file", path_);
    return static_cast<uint32_t>(bytes[0]) << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
  }

  void expect(uint32_t magic, const char* what) {
    const uint32_t begin = number();
    if (begin == magic) return;
    fail("{} is not an idx file of {}: it begins with {:08x}, not {:08x}", path_, what, begin,
         magic);
  }

  // Memory grows with the data that arrives, not with the size in a header.
  std::vector<uint8_t> body(uint64_t size) {
    constexpr uint64_t kStep = 16U << 20;
    std::vector<uint8_t> bytes;
    while (bytes.size() < size) {
      const size_t before = bytes.size();
      const uint64_t step = std::min(kStep, size - before);
      bytes.resize(before + step);
      const size_t got = read(bytes.data() + before, static_cast<unsigned>(step));
      if (got < step) {
        fail("{} is truncated: its header promises {} bytes of data, there are {}", path_, size,
             before + got);
      }
    }
    uint8_t more = 0;
    if (read(&more, 1) != 0) fail("{} has more data than its header says", path_);
    return bytes;
  }

 private:
  size_t read(uint8_t* to, unsigned size) {
    const int got = gzread(file_, to, size);
    int error = Z_OK;
    const char* why = gzerror(file_, &error);
    // A truncated gzip file returns the data that it has, and this error.
    if (error == Z_BUF_ERROR) fail("{} is truncated", path_);
    if (got < 0 || error < 0)
      fail("cannot read {}: {}", path_, error == Z_ERRNO ? strerror(errno) : why);
    return static_cast<size_t>(got);
  }

  const std::string path_;
  gzFile file_;
};

std::string stem(const std::string& path) {
  std::string name = std::filesystem::path(path).filename();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name;
}

class IdxSource : public ImageSource {
 public:
  IdxSource(const std::string& images, const std::string& labels) : stem_(stem(images)) {
    read_images(images);
    read_labels(labels);
  }

  uint64_t count() const override { return count_; }
  std::string name(uint64_t index) const override { return fmt::format("{}-{}", stem_, index); }
  int32_t label(uint64_t index) const override { return labels_[index]; }

  Image decoded(uint64_t index) const override {
    const auto* from = pixels_.data() + index * width_ * height_;
    return {width_, height_, 1, {from, from + static_cast<size_t>(width_) * height_}};
  }

  std::vector<uint8_t> encoded(uint64_t /*index*/) const override { return {}; }
  bool has_files() const override { return false; }

  std::string identity() const override {
    const uLong images = crc32_z(0, pixels_.data(), pixels_.size());
    const uLong labels = crc32_z(0, labels_.data(), labels_.size());
    return fmt::format("idx {} {} x {} x {} {:08x} {:08x}", stem_, count_, height_, width_, images,
                       labels);
  }

 private:
  void read_images(const std::string& path) {
    GzipFile file(path);
    file.expect(kBytesIn3, "images");
    count_ = file.number();
    height_ = file.number();
    width_ = file.number();
    if (count_ == 0 || height_ == 0 || width_ == 0) fail("{} holds no images", path);
    if (height_ > kMaxSide || width_ > kMaxSide) {
      fail("{} claims images of {} x {}", path, width_, height_);
    }
    pixels_ = file.body(count_ * height_ * width_);
  }

  void read_labels(const std::string& path) {
    GzipFile file(path);
    file.expect(kBytesIn1, "labels");
    const uint32_t count = file.number();
    if (count != count_) fail("{} has {} labels for {} images", path, count, count_);
    labels_ = file.body(count);
  }

  const std::string stem_;
  uint64_t count_ = 0;
  uint32_t height_ = 0, width_ = 0;
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> labels_;
};

}  // namespace

std::unique_ptr<ImageSource> open_idx(const std::string& images, const std::string& labels) {
  return std::make_unique<IdxSource>(images, labels);
}

}  // namespace sluice::lmdb
