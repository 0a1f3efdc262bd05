// The records of a key-value file in key order: each key, and where its value is. Plain data; as
// thread-safe as a vector. 16 bytes per record plus its key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::policy {

class RecordList {
 public:
  // `values_begin`: no value begins before it, in bytes from the beginning of the file; what is
  // read below it is no record.
  explicit RecordList(uint64_t values_begin = 0) : values_begin_(values_begin) {}

  void reserve(size_t records) { entries_.reserve(records); }
  // False, and nothing is added, if the keys would take more than 4 GiB.
  bool add(std::string_view key, uint64_t offset, uint32_t length) {
    if (key.size() > UINT32_MAX - keys_.size()) return false;
    keys_.append(key);
    entries_.push_back({offset, length, static_cast<uint32_t>(keys_.size())});
    return true;
  }
  // Releases unused reserved memory.
  void shrink() {
    entries_.shrink_to_fit();
    keys_.shrink_to_fit();
  }

  uint64_t values_begin() const { return values_begin_; }
  size_t size() const { return entries_.size(); }
  size_t key_bytes() const { return keys_.size(); }
  // REQUIRES: record < size().
  std::string_view key(size_t record) const {
    const uint32_t begin = record == 0 ? 0 : entries_[record - 1].key_end;
    return std::string_view(keys_).substr(begin, entries_[record].key_end - begin);
  }
  uint64_t offset(size_t record) const { return entries_[record].offset; }  // of the value, bytes
  uint32_t length(size_t record) const { return entries_[record].length; }  // likewise

 private:
  struct Entry {
    uint64_t offset;
    uint32_t length;
    uint32_t key_end;  // in keys_
  };
  static_assert(sizeof(Entry) == 16);

  uint64_t values_begin_;
  std::vector<Entry> entries_;
  std::string keys_;
};

}  // namespace sluice::policy
