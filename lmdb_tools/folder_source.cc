#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lmdb/failure.h"
#include "lmdb/file.h"
#include "lmdb_tools/source.h"

namespace sluice::lmdb {
namespace {

namespace fs = std::filesystem;

bool is_image_name(const fs::path& path) {
  std::string extension = path.extension();
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

class FolderSource : public ImageSource {
 public:
  explicit FolderSource(const std::string& folder) : folder_(folder) {
    std::vector<fs::path> classes;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) {
        classes.push_back(entry.path());
      } else if (is_image_name(entry.path())) {
        add(entry.path(), 0);
      }
    }
    std::sort(classes.begin(), classes.end());
    if (!classes.empty() && !items_.empty()) {
      fail("{} holds both images and folders: which class are the images of?", folder);
    }
    if (classes.empty()) sort_from(0);
    for (size_t label = 0; label < classes.size(); ++label) {
      const size_t first = items_.size();
      for (const auto& entry : fs::recursive_directory_iterator(classes[label])) {
        if (is_image_name(entry.path()) && !entry.is_directory()) {
          add(entry.path(), static_cast<int32_t>(label));
        }
      }
      sort_from(first);
    }
    if (items_.empty()) fail("{} has no .jpg, .jpeg or .png files", folder);
  }

  uint64_t count() const override { return items_.size(); }
  std::string name(uint64_t index) const override { return items_[index].name; }
  int32_t label(uint64_t index) const override { return items_[index].label; }

  Image decoded(uint64_t index) const override {
    const std::string path = full_path(index);
    return decode_image(read_file(path), path);
  }

  std::vector<uint8_t> encoded(uint64_t index) const override {
    const std::string path = full_path(index);
    std::vector<uint8_t> bytes = read_file(path);
    check_image_header(bytes, path);
    return bytes;
  }

  bool has_files() const override { return true; }

  std::string identity() const override {
    uLong sum = 0;
    for (const Item& item : items_) {
      struct stat status {};
      const std::string path = folder_ + "/" + item.name;
      if (stat(path.c_str(), &status) != 0) fail("cannot read {}: {}", path, strerror(errno));
      const std::string line =
          fmt::format("{} {} {} {}.{}\n", item.name, item.label, status.st_size,
                      status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
      sum = crc32_z(sum, reinterpret_cast<const Bytef*>(line.data()), line.size());
    }
    return fmt::format("folder of {} images {:08x}", items_.size(), sum);
  }

 private:
  struct Item {
    std::string name;  // relative to the folder
    int32_t label;
  };

  void add(const fs::path& path, int32_t label) {
    items_.push_back({path.lexically_relative(folder_).string(), label});
  }

  void sort_from(size_t first) {
    std::sort(items_.begin() + static_cast<ptrdiff_t>(first), items_.end(),
              [](const Item& a, const Item& b) { return a.name < b.name; });
  }

  std::string full_path(uint64_t index) const { return folder_ + "/" + items_[index].name; }

  const std::string folder_;
  std::vector<Item> items_;
};

}  // namespace

std::unique_ptr<ImageSource> open_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) fail("{} is not a folder of images", folder);
  return std::make_unique<FolderSource>(folder);
}

}  // namespace sluice::lmdb
