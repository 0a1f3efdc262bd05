// Which backing file a FUSE node id stands for. Nodes hold a path below SOURCE and no descriptor
// but while they are open, so a tree of millions of files costs memory only while the kernel
// remembers its names.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::slowfs {

// Two names are one node when they are hard links of one file. The birth time distinguishes a file
// from a later one that got its inode number.
struct FileKey {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t born_ns = 0;
  bool operator==(const FileKey&) const = default;
};

class Inodes {
 public:
  static constexpr uint64_t kRoot = 1;   // FUSE_ROOT_ID
  static constexpr uint64_t kStats = 2;  // the virtual files
  static constexpr uint64_t kDrop = 3;
  static constexpr uint64_t kFirst = 16;

  // The path relative to SOURCE, "." for the root; empty if the node is not known. Any thread.
  std::string path(uint64_t node) const;

  // Path of `name` in folder `node`; empty if the folder is not known. Any thread.
  std::string path(uint64_t node, const char* name) const;

  // True if the node still stands for this file; the root always does. Any thread.
  bool is(uint64_t node, const FileKey& key) const;

  // The node of this file, made if need be, with one more reference by the kernel. Any thread.
  uint64_t remember(const FileKey& key, const std::string& path);

  // The file was looked up, and the next open belongs to the same request: true once after each
  // looked_up(). Any thread.
  void looked_up(uint64_t node);
  bool opens_what_was_looked_up(uint64_t node);

  // The kernel gives back `count` references. Any thread.
  void forget(uint64_t node, uint64_t count);

  // An open file of the node, by which it can be reached after another file took its name.
  // `fd` stays the caller's, which takes it back with closed() before closing it. Any thread.
  void opened(uint64_t node, int fd);
  void closed(uint64_t node, int fd);

  // A descriptor of its own for an open file of the node, or -1. Any thread.
  int open_copy(uint64_t node) const;

  size_t size() const;

  // All nodes that the kernel holds, with their paths; the root is not one of them. Any thread.
  std::vector<std::pair<uint64_t, std::string>> all() const;

 private:
  struct Node {
    FileKey key;
    std::string path;
    uint64_t references = 0;
    bool looked_up = false;  // and not opened since
    std::vector<int> open;
  };
  struct Hash {
    size_t operator()(const FileKey& key) const {
      uint64_t mixed = key.inode * 0x9e3779b97f4a7c15U ^ static_cast<uint64_t>(key.born_ns);
      mixed = (mixed ^ key.device) * 0xff51afd7ed558ccdU;
      return mixed ^ (mixed >> 32);
    }
  };

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Node> nodes_;
  std::unordered_map<FileKey, uint64_t, Hash> by_key_;
  uint64_t next_ = kFirst;  // never used again, so the kernel needs no generation numbers
};

}  // namespace sluice::slowfs
