#include "lmdb/database.h"

#include <array>
#include <bit>
#include <cstring>
#include <filesystem>

#include "lmdb/failure.h"

namespace sluice::lmdb {
namespace {

std::string data_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path + "/data.mdb" : path;
}

void check_root(const std::string& path, const Tree& tree, uint64_t pages, const char* what) {
  if (tree.root == kNoPage) {
    if (tree.entries != 0) fail("{} is damaged: its {} tree has entries and no root", path, what);
    return;
  }
  if (tree.depth == 0 || tree.depth > kMaxDepth) {
    fail("{} is damaged: its {} tree is {} levels deep", path, what, tree.depth);
  }
  if (tree.root < 2) fail("{} is damaged: the root of its {} tree is a meta page", path, what);
  if (tree.root >= pages) {
    fail("{} is truncated: the root of its {} tree, page {}, lies beyond its end", path, what,
         tree.root);
  }
}

}  // namespace

Database::Database(const std::string& path) : file_(data_file(path)) {
  if (file_.size() == 0) fail("{} is empty, not an LMDB file", file_.path());
  if (file_.size() < sizeof(PageHeader) + sizeof(Meta)) {
    fail("{} is not an LMDB file: {} bytes are too few", file_.path(), file_.size());
  }
  page_size_ = read_meta(0).free_pages.page_size;
  if (!std::has_single_bit(page_size_) || page_size_ < 256 || page_size_ > 65536) {
    fail("{} is damaged: its page size is {}", file_.path(), page_size_);
  }
  meta_ = newest_meta();
  if (meta_.free_pages.page_size != page_size_) {
    fail("{} is damaged: its meta pages give two page sizes", file_.path());
  }
  if (meta_.last_page < 1 || meta_.last_page > UINT64_MAX / page_size_ - 1) {
    fail("{} is damaged: its meta page says that page {} is the last", file_.path(),
         meta_.last_page);
  }
  check_root(file_.path(), meta_.records, file_pages(), "record");
  check_root(file_.path(), meta_.free_pages, file_pages(), "free-page");
}

Meta Database::read_meta(uint64_t offset) const {
  std::array<uint8_t, sizeof(PageHeader) + sizeof(Meta)> bytes{};
  read(offset, bytes);
  PageHeader header{};
  Meta meta{};
  memcpy(&header, bytes.data(), sizeof header);
  memcpy(&meta, bytes.data() + sizeof header, sizeof meta);
  if (meta.magic != kMagic || (header.flags & kMetaPage) == 0) {
    if (offset == 0) fail("{} is not an LMDB file: it does not begin with a meta page", path());
    fail("{} is damaged: its second meta page is none", path());
  }
  if (meta.version != kDataVersion) {
    fail("{} is in LMDB's data version {}; this program reads version {}", path(), meta.version,
         kDataVersion);
  }
  return meta;
}

Meta Database::newest_meta() const {
  const Meta first = read_meta(0);
  const Meta second = read_meta(page_size_);
  return second.transaction > first.transaction ? second : first;
}

void Database::read(uint64_t offset, std::span<uint8_t> out) const {
  if (offset > file_.size() || out.size() > file_.size() - offset) {
    fail("{} is truncated: it is {} bytes long and refers to byte {}", path(), file_.size(),
         offset + out.size() - 1);
  }
  file_.read(offset, out);
}

void Database::check_unchanged() const {
  if (newest_meta().transaction != meta_.transaction) {
    fail("{} was written to while it was read; repeat this when no writer is at work", path());
  }
}

}  // namespace sluice::lmdb
