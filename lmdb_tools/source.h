// Sources of images and records. Everything here may be called by several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lmdb_tools/image.h"

namespace sluice::lmdb {

// Numbered images with labels.
class ImageSource {
 public:
  ImageSource() = default;
  ImageSource(const ImageSource&) = delete;
  ImageSource& operator=(const ImageSource&) = delete;
  virtual ~ImageSource() = default;

  virtual uint64_t count() const = 0;
  virtual std::string name(uint64_t index) const = 0;  // becomes part of the key
  virtual int32_t label(uint64_t index) const = 0;
  virtual Image decoded(uint64_t index) const = 0;
  // The unmodified image file, after a check of its header. REQUIRES: has_files().
  virtual std::vector<uint8_t> encoded(uint64_t index) const = 0;
  virtual bool has_files() const = 0;
  // One line that differs if the images differ.
  virtual std::string identity() const = 0;
};

// Two idx files, plain or gzip: unsigned bytes in three dimensions, and their labels in one. Held
// in memory, decompressed.
std::unique_ptr<ImageSource> open_idx(const std::string& images, const std::string& labels);

// All .jpg, .jpeg and .png files below `folder`, ordered by path. Its subfolders in sorted order
// are the classes 0, 1, ...; without subfolders every image is of class 0.
std::unique_ptr<ImageSource> open_folder(const std::string& folder);

struct KeyValue {
  std::string key;
  std::string value;
};

// Numbered records, to be written in this order; their keys ascend.
class RecordSource {
 public:
  RecordSource() = default;
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;
  virtual ~RecordSource() = default;

  virtual uint64_t count() const = 0;  // distinct ones; higher indices repeat them
  virtual KeyValue read(uint64_t index) const = 0;
};

// "00000042_name": Caffe's form, whose order is the records' order. Truncated to LMDB's longest
// key.
// REQUIRES: index < 10^8; see check_key_range.
std::string record_key(uint64_t index, std::string_view name);

// Fails if `records` records are too many for such keys.
void check_key_range(uint64_t records);

}  // namespace sluice::lmdb
